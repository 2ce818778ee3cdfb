"""Turn a simple Chinese question into English tokens in an order the parser reads; schema names and values stay as they are."""

# ruff: noqa: E501, SIM905 - word lists read best as long lines of plain words

import re
from collections.abc import Iterable

from longtable.app.offline.text import Token, tokenize

# Longest match wins. An empty translation drops the word.
_WORDS = """
多少=how many|几=how many|有多少=how many|多少个=how many|多少条=how many|多少名=how many|多少位=how many|多少家=how many|多少首=how many|多少张=how many|多少架=how many|多少次=how many
几个=how many|几次=how many|几种=how many distinct|几位=how many|几名=how many|多少种=how many distinct|多少不同的=how many distinct|数量=number of ~|个数=number of ~|总数=number of ~|人数=number of person ~|次数=number of ~|数目=number of ~|总共=|一共=|共有=|共=
平均=average|平均值=average ~|均值=average ~|平均数=average ~|总和=sum ~|总计=sum|合计=sum|总额=total amount of ~|总量=total ~|总=total|最大值=maximum ~|最小值=minimum ~|最大=highest ~|最小=lowest ~|最高=highest ~|最低=lowest ~|最多=most ~|最少=fewest ~
最长=longest|最短=shortest|最贵=most expensive|最便宜=cheapest|最老=oldest|最年轻=youngest|最年长=oldest|最新=newest|最近=most recent|最早=earliest|最晚=latest|最快=fastest|最慢=slowest|最重=heaviest|最轻=lightest|最远=farthest|最近的距离=shortest distance|最热门=most popular|最受欢迎=most popular|最常见=most common|最好=best|最差=worst
年龄最大=oldest|年龄最小=youngest|价格最高=most expensive|价格最低=cheapest
每个=each|每=each|各=each|每一个=each|各个=each|每位=each|每名=each|每家=each|每种=each|每类=each|每张=each|每首=each|每架=each|每天=each day|每年=each year|每月=each month|每个月=each month|每一年=each year|每季度=each quarter|每小时=each hour|按月=by month|按年=by year|按天=by day|按日=by day|按季度=by quarter|按小时=by hour|按=by|按照=by|根据=by|分组=|统计=|分别=|分布=|分类=
大于=more than|多于=more than|超过=more than|高于=more than|大于等于=at least|不少于=at least|至少=at least|不低于=at least|小于=less than|少于=less than|低于=less than|不到=less than|小于等于=at most|不超过=at most|至多=at most|最多不超过=at most|不高于=at most|等于=equal to|不等于=not equal to|晚于=after|早于=before|之后=after ~|以后=after ~|之前=before ~|以前=before ~|以来=since ~|介于=between|之间=|长于=longer than|短于=shorter than|贵于=more expensive than
以上=or more|以下=or less|及以上=or more|或以上=or more|及以下=or less|或更多=or more|或更少=or less
没有=without|无=without|没=not|不是=not|不在=not|非=not|未=not|不含=not|从未=never|从来没有=never|缺少=without|为空=is null|是空=is null|缺失=is null|不为空=is not null|除了=except|除=except|以外=|之外=
不同=distinct|不同的=distinct|不重复=distinct|去重=distinct|唯一=distinct|种类=distinct
包含=containing|含有=containing|包括=containing|以开头=starting with|开头=starting with ~|开始=start|结尾=ending with ~|以结尾=ending with
排序=order|升序=ascending|降序=descending|从高到低=descending|从低到高=ascending|从大到小=descending|从小到大=ascending|倒序=descending|正序=ascending|从多到少=descending|从少到多=ascending|由高到低=descending|由低到高=ascending|排列=order|按升序=ascending|按降序=descending
前=top|前面=top|后=last|最后=last|第一=first|首先=first|头=top|倒数=bottom
列出=list|显示=show|给出=show|查询=show|查找=find|找出=find|看看=show|告诉=tell|请=|请问=|我=|想=|知道=|帮=|我想知道=|帮我=|一下=|所有=all|全部=all|全体=all|名单=list
哪个=which|哪些=which|哪位=which|哪家=which|哪一个=which|哪种=which|哪首=which|哪张=which|哪=which|谁=who|什么=what|是什么=what|什么时候=when|何时=when|哪里=where|哪儿=where|是=is|是多少=what is|为=is|有=have|有哪些=which|在=in|从=from|到=to|至=to|由=by|的=of|了=|吗=|呢=|啊=|吧=|和=and|与=and|及=and|以及=and|或=or|或者=or|还是=or|并且=and|且=and|而=and|就=|都=|也=also|还=also|又=also|只=only|仅=only|只看=only|只要=only|只有=only|仅看=only|那么=|那=|那些=those|这些=those|他们=they|它们=they|她们=they|它=it|他=he|她=she|其=their|其中=of those|这=this|该=this|上述=those|以上这些=those|其他=the others|其余=the rest|其它=the others|剩下=the rest|同样=same|一样=same|相同=same|再=|换成=what about|改成=what about|改为=what about|怎么样=|如何=|情况=|结果=|数据=data|记录=records|信息=information
个=|条=|名=|位=|家=|首=|张=|架=|次=|件=|部=|只股=|本=|辆=|台=|份=|所=|种=|里=in|中=in|上=in|内=in|下=|当中=in|里面=in|时=|时候=|期间=in|之中=in|比=than|占比=percentage of|百分比=percentage of|比例=percentage of|占=|百分之几=percentage of|多大=how old|多长=how long|多重=how heavy|多高=how tall|多久=how long|属于=|来自=from|位于=in|住在=in|飞往=to|飞到=to|飞=fly|出发=depart|起飞=depart|出发时间=departure time|起飞时间=departure time|到达时间=arrival time|抵达时间=arrival time|离开=left|到达=arrive|抵达=arrive|前往=to|去=to|发往=to|拥有=have|购买=buy|买=buy|卖=sell|售出=sell|花费=spent|花=spent|写=write|出生=born|雇佣=hired|入职=hired|上映=released|发行=released|制造=made|生产=made|成立=founded|开业=open
航班=flight|航空公司=airline|承运人=carrier|飞机=plane|机场=airport|天气=weather|机型=model|型号=model|制造商=manufacturer|厂商=manufacturer|延误=delay|晚点=delay|出发延误=departure delay|起飞延误=departure delay|到达延误=arrival delay|抵达延误=arrival delay|目的地=destination|始发地=origin|出发地=origin|出发机场=origin|起飞机场=origin|到达机场=destination|距离=distance|飞行距离=distance|飞行时间=air time|空中时间=air time|机尾号=tail number|尾号=tail number|座位=seat|座位数=seat|座=seat|发动机=engine|引擎=engine|速度=speed|温度=temperature|气温=temperature|湿度=humidity|风速=wind speed|降水=precipitation|能见度=visibility|气压=pressure|航班号=flight number|取消=cancelled
客户=customer|顾客=customer|用户=user|员工=employee|雇员=employee|职员=employee|经理=manager|部门=department|供应商=supplier|产品=product|商品=product|订单=order|订单数=number of order|发票=invoice|类别=category|分类目录=category|运货商=shipper|运输公司=shipper|运费=freight|库存=stock|单价=unit price|价格=price|售价=price|成本=cost|费用=cost|金额=amount|销售额=sales|销量=sales|收入=revenue|折扣=discount|数额=amount|总价=total
歌手=artist|艺术家=artist|艺人=artist|专辑=album|歌曲=track|曲目=track|歌=track|音轨=track|流派=genre|风格=genre|播放列表=playlist|歌单=playlist|媒体类型=media type|作曲家=composer|作曲=composer|时长=length|长度=length|大小=size|标题=title|名称=name|名字=name|姓名=name|姓=last name|电影=movie|演员=actor|导演=director|语言=language|音乐会=concert|演唱会=concert|体育场=stadium|容量=capacity|博物馆=museum|游客=visitor|门票=ticket
学生=student|老师=teacher|教师=teacher|教授=professor|课程=course|班级=class|成绩=grade|分数=score|年级=grade|学校=school|大学=university|专业=major|学分=credit|学期=semester|系=department|医院=hospital|医生=doctor|护士=nurse|病人=patient|患者=patient|病房=ward|预约=appointment|就诊=visit|诊断=diagnosis|药品=medicine|药物=medication|处方=prescription|科室=department|手术=surgery|住院=admission|疾病=disease
图书=book|书=book|书籍=book|图书馆=library|作者=author|作家=author|出版社=publisher|读者=member|会员=member|借阅=loan|借书=loan|罚款=fine|分馆=branch|出版=published|页数=page|页=page
车辆=vehicle|汽车=car|卡车=truck|司机=driver|驾驶员=driver|仓库=warehouse|货物=shipment|运单=shipment|包裹=parcel|路线=route|线路=route|货运=shipment|快递=shipment|重量=weight|体积=volume|商店=shop|店铺=shop|门店=store|宠物=pet|狗=dog|猫=cat|国家=country|城市=city|省=province|州=state|地区=region|地址=address|电话=phone|邮箱=email|电子邮件=email|邮编=postal code|年龄=age|性别=sex|男=male|女=female|男性=male|女性=female|男生=male|女生=female|生日=birth date|出生日期=birth date|工资=salary|薪水=salary|薪资=salary|奖金=bonus|职位=title|职称=title|公司=company|日期=date|时间=time|年份=year|月份=month|星期=weekday|季度=quarter|小时=hour|分钟=minutes|秒=seconds|天=day|年=year|月=month|日=day|公里=km|英里=miles|公斤=kg|元=dollars|美元=dollars|岁=years|人=person|人口=population|面积=area|评分=rating|等级=level|级别=level|类型=type|状态=status|描述=description|数=number of ~|编号=id|号码=number|代码=code
品牌=brand|客人=guest|顾问=consultant|月薪=salary|年薪=salary|薪=salary|预订=booking|订房=booking|入住=check in|评价=review|星级=star|晚=night|票价=ticket price|座席=seat|租赁=rental|租借=rental|出租=rental|自行车=bike|票=ticket|航线=route|酒店=hotel|房间=room|餐厅=restaurant|菜=dish|比赛=match|球队=team|球员=player|银行=bank|账户=account|交易=transaction|贷款=loan|文章=article|评论=comment|项目=project|任务=task|合同=contract|设备=device|传感器=sensor|船=ship|港口=port|岛=island|河流=river|山=mountain|公园=park|动物=animal|植物=plant|种子=seed|工厂=factory|机器=machine|零件=part|材料=material|颜色=color|尺寸=size|高度=height|宽度=width|深度=depth|出生年份=birth year|余额=balance|利率=interest rate|排名=rank
巴西=Brazil|加拿大=Canada|美国=USA|法国=France|德国=Germany|英国=UK|中国=China|日本=Japan|印度=India|意大利=Italy|西班牙=Spain|墨西哥=Mexico|葡萄牙=Portugal|荷兰=Netherlands|澳大利亚=Australia|阿根廷=Argentina|瑞典=Sweden|挪威=Norway|丹麦=Denmark|芬兰=Finland|波兰=Poland|比利时=Belgium|奥地利=Austria|瑞士=Switzerland|爱尔兰=Ireland|俄罗斯=Russia|韩国=Korea|伦敦=London|巴黎=Paris|柏林=Berlin|北京=Beijing|上海=Shanghai|东京=Tokyo|纽约=New York|摇滚=Rock|爵士=Jazz|拉丁=Latin|金属=Metal|古典=Classical|蓝调=Blues|流行=Pop|饮料=Beverages|海鲜=Seafood|肉类=Meat
一月=January|二月=February|三月=March|四月=April|五月=May|六月=June|七月=July|八月=August|九月=September|十月=October|十一月=November|十二月=December|一月份=January|二月份=February|三月份=March|四月份=April|五月份=May|六月份=June|七月份=July|八月份=August|九月份=September|十月份=October|十一月份=November|十二月份=December|周一=Monday|周二=Tuesday|周三=Wednesday|周四=Thursday|周五=Friday|周六=Saturday|周日=Sunday
一=1|二=2|两=2|三=3|四=4|五=5|六=6|七=7|八=8|九=9|十=10|一百=100|一千=1000|一万=10000|十个=10|五个=5|三个=3|两个=2
体重=weight|身高=height|时薪=hourly wage|日薪=daily wage|周薪=weekly wage|底薪=base salary|佣金=commission|物种=species|品种=breed|种族=race|国籍=nationality|民族=ethnicity|工人=worker|农民=farmer|农场=farm|地块=field|田地=field|田=field|农田=field|作物=crop|庄稼=crop|收成=harvest|收获=harvest|产量=yield|种植=planting|土壤=soil|公顷=hectares|亩=mu|吨=tonnes|克=grams|升=liters|米=meters|厘米=cm|平方米=square meters|度=degrees|页码=page|展览=exhibition|展品=exhibit|艺术品=artwork|作品=work|画作=painting|画家=painter|雕塑=sculpture|照片=photo|馆藏=collection|藏品=collection item|捐赠=donation|捐款=donation|捐赠者=donor|志愿者=volunteer|赞助商=sponsor|赞助=sponsor|预算=budget|加入=joined|加入日期=join date|注册=registered|注册日期=registration date|参加=attend|报名=enrollment|参观=visit
访问=visit|来访=visit|销售=sale|销售总额=total revenue|总销售额=total revenue|销售收入=revenue|营业额=revenue|营收=revenue|总收入=total revenue|利润=profit|支出=expense|开支=expense|付款=payment|支付=payment|付款方式=payment method|支付方式=payment method|欠款=balance|税=tax|押金=deposit|保险=insurance|保单=policy|索赔=claim|理赔=claim|保费=premium|投保人=policyholder|代理人=agent|经纪人=agent|律师=lawyer|案件=case|法官=judge|警察=officer|消防=fire|事故=accident|事件=incident|投诉=complaint|工单=ticket|故障=fault|维修=repair|保养=maintenance|维护=maintenance|检查=inspection|检验=inspection|测试=test|实验=experiment|样本=sample|研究=study|论文=paper|期刊=journal|引用=citation|研究员=researcher|科学家=scientist|工程师=engineer|程序员=programmer|开发者=developer|技师=technician|机械师=mechanic|厨师=chef|服务员=waiter|收银员=cashier|教练=coach
裁判=referee|导游=guide|飞行员=pilot|船长=captain|船员=crew|乘客=passenger|旅客=passenger|租客=tenant|房客=tenant|房东=landlord|业主=owner|主人=owner|所有者=owner|买家=buyer|卖家=seller|会员卡=membership card|会员等级=membership tier|会费=membership fee|课=class|健身房=gym|健身=fitness|锻炼=workout|游泳=swimming|瑜伽=yoga|俱乐部=club|联赛=league|赛季=season|进球=goal|得分=score|胜利=win|失败=loss|奖牌=medal|奖项=award|冠军=champion|锦标赛=tournament|运动员=athlete|体育馆=stadium|场馆=venue|场地=venue|活动=event|节目=show|剧集=episode|频道=channel|观众=audience|票房=box office|游戏=game|玩家=player|应用=app|下载=download|下载量=downloads|网站=website|帖子=post|粉丝=follower|消息=message|邮件=mail|文件=file|文档=document|页面=page|账单=bill|账号=account
密码=password|登录=login|服务器=server|计算机=computer|电脑=computer|手机=phone|手机号=phone number|电话号码=phone number|软件=software|版本=version|许可证=license|型号名称=model name|设施=facility|建筑=building|楼=building|楼层=floor|公寓=apartment|房产=property|房屋=house|房源=listing|租金=rent|租约=lease|租期=lease term|地段=location|位置=location|地点=location|区=district|街道=street|村=village|镇=town|县=county|州名=state|大洲=continent|海拔=elevation|深=deep|站=station|车站=station|站点=station|火车=train|列车=train|地铁=subway|公交=bus|公交车=bus|出租车=taxi|车票=ticket|线=line|车队=fleet|里程=mileage|油耗=fuel consumption|燃料=fuel|燃油=fuel|电力=power|能源=energy|发电=generation|发电量=generation|发电厂=power plant|用电量=consumption|消耗=consumption|电池=battery|太阳能=solar
风能=wind|水=water|天然气=gas|石油=oil|矿=mine|金属材料=metal|木材=wood|纸=paper|玻璃=glass|塑料=plastic|食品=food|食物=food|菜品=dish|菜单=menu|套餐=meal|配料=ingredient|食材=ingredient|食谱=recipe|热量=calories|卡路里=calories|水果=fruit|蔬菜=vegetable|肉=meat|鱼=fish|牛奶=milk|奶酪=cheese|面包=bread|咖啡=coffee|茶=tea|酒=wine|葡萄酒=wine|啤酒=beer|树=tree|森林=forest|鸟=bird|马=horse|牛=cow|羊=sheep|猪=pig|鸡=chicken|兔=rabbit|饲养员=keeper|兽医=vet|疫苗=vaccine|接种=vaccination|领养=adoption|收养=adoption|救助=rescue|玩具=toy|衣服=clothes|鞋=shoe|服装=clothing|家具=furniture|礼物=gift|首饰=jewelry|标签=tag|主题=topic|章节=chapter|出版日期=publication date|出版年份=publication year
译者=translator|编辑=editor|借书证=library card|逾期=overdue|归还=return|到期=due|到期日=due date|截止日期=deadline|开始日期=start date|结束日期=end date|创建日期=created date|入职日期=hire date|雇用日期=hire date|雇佣日期=hire date|订单日期=order date|发货日期=ship date|交货日期=delivery date|购买日期=purchase date|预订日期=booking date|入住日期=check in date|退房日期=check out date|诊断日期=diagnosis date|发布日期=release date|上映日期=release date|成立年份=founded year|建造年份=built year|建成=built|建于=built|成立于=founded|出生于=born|死亡=death|去世=death|任务数=number of task|工时=hours|加班=overtime|出勤=attendance|请假=leave|假期=leave|岗位=position|职务=position|职业=occupation|角色=role|团队=team|小组=group|组=group|分组名=group|客户类型=customer type|类=type|性质=type|品类=category|优先级=priority|严重程度=severity|难度=difficulty|阶段=stage|结果值=result|完成=completed|已完成=completed|进行中=in progress|已取消=cancelled|待处理=pending
未付=unpaid|已付=paid|已支付=paid|启用=active|活跃=active|在职=active|有效=active|无效=inactive|过期=expired|免费=free|会议=meeting|演讲=talk|讲师=instructor|演讲者=speaker|参会者=attendee|参与者=participant|嘉宾=guest|选手=contestant|候选人=candidate|申请=application|申请人=applicant|面试=interview|职员数=number of employee|学生数=number of student|选课=enrollment|注册人数=number of enrollment|毕业=graduation|宿舍=dormitory|奖学金=scholarship|学费=fee|科目=subject|关闭=closed|未关闭=open|未完成=not completed|未支付=unpaid|未付款=unpaid|被=were|取消=cancelled|影院=cinema|电影院=cinema|放映厅=screen|上映年份=release year|加入年份=join year|场次=showing|放映=showing|要价=asking price|挂牌价=list price|卧室=bedroom|城镇=town|合同金额=contract value|客服=agent|坐席=agent|教=teach|授课=teach|任教=teach|带=|负责=manage|教授的=teach|作业=assignment|考试=exam|平均分=average score|总分=total score|病历=record|病例=case|症状=symptom|治疗=treatment|疗程=treatment|剂量=dose|血型=blood type|床位=bed|病床=bed|急诊=emergency|出院=discharge|过敏=allergy|诊所=clinic|牙医=dentist|护理=care|手术室=operating room|实验室=lab|仪器=instrument|器械=equipment|机构=organization|组织=organization|基金=fund|股票=stock|股价=stock price|投资=investment|资产=asset
负债=debt|存款=deposit|取款=withdrawal|转账=transfer|信用卡=credit card|信用=credit|分行=branch|支行=branch|柜员=teller|货币=currency|汇率=exchange rate|收据=receipt|采购=purchase|进货=purchase|出货=shipment|退货=return|物流=logistics|配送=delivery|送货=delivery|快递员=courier|包装=package|集装箱=container|货船=cargo ship|码头=dock|海关=customs|吨位=tonnage|载重=load|容积=volume|座位号=seat number|登机口=gate|航站楼=terminal|行李=luggage|座舱=cabin|机组=crew|旅行=trip|旅程=trip|行程=trip|旅游=tour|景点=attraction|酒店名=hotel name|客房=room|房型=room type|房价=room price|早餐=breakfast|住客=guest|评论数=number of review|点赞=like|浏览=view|浏览量=views|播放=play|播放量=plays|播放次数=plays|订阅=subscription|套餐费=plan fee|流量=traffic|通话=call|短信=message|网络=network|信号=signal|传感=sensor
读数=reading|测量=measurement|湿=humidity|降雨量=rainfall|雨量=rainfall|风=wind|地震=earthquake|震级=magnitude|火山=volcano|湖=lake|湖泊=lake|海=sea|沙漠=desert|星球=planet|行星=planet|恒星=star|卫星=satellite|火箭=rocket|宇航员=astronaut|望远镜=telescope|人名=name|别名=alias|昵称=nickname|用户名=username|全名=full name|姓氏=last name|中文名=name|备注=note|说明=description|内容=content|链接=url|语种=language|年代=decade|季节=season|上午=morning|下午=afternoon|工作日=weekday|周末=weekend|星期几=weekday|时段=time slot|班次=shift|轮班=shift|日程=schedule|时间表=schedule|期限=term|年限=years|工龄=seniority|寿命=lifespan|年纪=age|岁数=age|最高龄=oldest|最大年龄=maximum age|最小年龄=minimum age|平均年龄=average age|最多的=most|最少的=fewest|最贵的=most expensive|最便宜的=cheapest|最新的=newest|最早的=earliest
最近的=most recent|最长的=longest|最短的=shortest|最重的=heaviest|最轻的=lightest|最快的=fastest|最慢的=slowest|最老的=oldest|最年轻的=youngest|最高分=highest score|最低分=lowest score|最低价=lowest price|最高价=highest price|均价=average price|平均价格=average price|总重量=total weight|总金额=total amount|总费用=total cost|总成本=total cost|总数量=total quantity|总人数=number of person|总面积=total area|总时长=total duration|总距离=total distance|总产量=total yield|每人=each person|人均=average|每次=each|每场=each|每间=each|每只=each|每辆=each|每台=each|每本=each|每件=each|每部=each|每门=each|每座=each|每所=each|每支=each|每条=each|每项=each|每份=each|多少只=how many|多少间=how many|多少场=how many|多少辆=how many|多少台=how many|多少本=how many|多少件=how many|多少部=how many|多少门=how many|多少座=how many|多少所=how many|多少支=how many|多少项=how many|多少份=how many|多少笔=how many|多少起=how many|多少幅=how many
多少头=how many|多少匹=how many|多少颗=how many|多少艘=how many|多少届=how many|多少人=how many person|多少钱=how much|几只=how many|几场=how many|几本=how many|几间=how many|几辆=how many|几台=how many|哪一位=which|哪一家=which|哪一种=which|哪个月=which month|哪一年=which year|哪年=which year|哪天=which day|哪一天=which day|哪些人=who|哪只=which|哪本=which|哪部=which|哪门=which|哪间=which|哪辆=which|哪台=which|哪座=which|哪支=which|哪条=which|哪场=which|哪项=which|哪幅=which|哪笔=which|哪艘=which|只有一个=exactly 1|恰好=exactly|刚好=exactly|正好=exactly|高过=more than|多过=more than|大过=more than|不大于=at most|不小于=at least|不多于=at most|至少有=have at least|超过了=more than|早于等于=until|晚于等于=since|截至=until|自=since|从来没=never|还没有=not|还没=not|尚未=not|未曾=never|没有任何=without any|均=
各自=each|各个不同=distinct|各类=each|各种=each|各部门=each department|各城市=each city|各国=each country|各月=each month|各年=each year|各州=each state|各地区=each region|逐年=by year|逐月=by month|总览=|大概=|具体=|分别是=|叫什么=what|叫=named|名叫=named|叫做=named|名为=named|是谁=who|谁是=who|住=live|居住=live|工作=work|任职=work|就职=work|所属=of|所在=of|对应=of|相关=of|最受=most|受欢迎=popular|畅销=best selling|最畅销=best selling|热门=popular|常见=common|贵=expensive|便宜=cheap|老=old|年轻=young|新=new|旧=old|男生数=number of male|一半=half|笔=|起=|幅=|匹=|颗=|艘=|届=|间=|门=|支=|项=|场=|杯=
瓶=|盒=|袋=|包=|棵=|朵=|口=|双=|套=|层=floor|所有的=all|全部的=all|一共有=how many|总共有=how many|共有多少=how many|一共有多少=how many|总共有多少=how many|请列出=list|请给出=show|请显示=show|列举=list|列一下=list|统计一下=|求=|求出=|计算=|算一下=|算出=|超出=more than|达到=reach|达=reach|满=|依=by|依照=by|排名前=top|排在前=top|前几=top|排行=ranking|名次=rank|倒数第一=lowest|德国人=German|中国人=Chinese|美国人=American|法国人=French|英国人=British|日本人=Japanese|意大利人=Italian|西班牙人=Spanish
"""
LEXICON: dict[str, str] = {pair.split("=")[0]: pair.split("=")[1] for line in _WORDS.strip().splitlines() for pair in line.split("|")}
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
_CJK_RUN = re.compile(r"[\u3400-\u9fff]+")
_QUOTED = re.compile(r"""["“「《'‘]([^"”」》'’]+)["”」》'’]""")


def translate(question: str, names: Iterable[str]) -> list[Token]:
    """Return English tokens for a Chinese question; `names` are schema names and values in Chinese, kept whole."""
    lexicon = {**LEXICON, **{name: f"\0{name}" for name in names if _CJK_RUN.search(name)}}
    text = _dates(
        re.sub(
            r"^(我们)?(这个|这家|该)?[\u3400-\u9fff]{1,3}(园|馆|院|校|店|司|厂|场|库|系统|农场)(里|中|内|里面)(?=(一共|总共|共)?有(多少|几))",
            "",
            question,
        )
    )
    pieces: list[str] = []
    place = 0
    for match in re.finditer(r"""["“「《‘][^"”」》’]+["”」》’]|[\u3400-\u9fff]+""", text):
        pieces.append(text[place : match.start()])
        run = match.group(0)
        pieces += [f' "{run[1:-1]}" '] if _QUOTED.fullmatch(run) else [f" {word} " for word in segment(run, lexicon)]
        place = match.end()
    pieces.append(text[place:])
    return _tokens(_reorder([piece.strip() for piece in pieces if piece.strip()]))


def segment(run: str, lexicon: dict[str, str]) -> list[str]:
    """Split a run of Chinese by longest match; what is not in the lexicon stays as one unknown word."""
    words: list[str] = []
    unknown = ""
    place = 0
    longest = max(map(len, lexicon))
    while place < len(run):
        size = next((size for size in range(min(longest, len(run) - place), 0, -1) if run[place : place + size] in lexicon), 0)
        if not size:
            unknown += run[place]
            place += 1
            continue
        if unknown:
            words.append(f"\0{unknown}")
            unknown = ""
        if translated := lexicon[run[place : place + size]]:
            words.append(translated)
        place += size
    return [*words, f"\0{unknown}"] if unknown else words


def _dates(text: str) -> str:
    text = re.sub(r"(\d{4})\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]", lambda m: f" {m[1]}-{int(m[2]):02d}-{int(m[3]):02d} ", text)
    text = re.sub(
        r"(\d{4})\s*年\s*(\d{1,2})\s*月份?", lambda m: f" {_MONTHS[int(m[2]) - 1] if 1 <= int(m[2]) <= 12 else m[2]} {m[1]} ", text
    )
    text = re.sub(
        r"(?<!\d)(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]",
        lambda m: f" {_MONTHS[int(m[1]) - 1] if 1 <= int(m[1]) <= 12 else m[1]} {m[2]} ",
        text,
    )
    text = re.sub(r"(?<!\d)(\d{1,2})\s*月份?", lambda m: f" {_MONTHS[int(m[1]) - 1] if 1 <= int(m[1]) <= 12 else m[1]} ", text)
    return re.sub(r"(\d{4})\s*年", r" \1 ", text)


def _reorder(words: list[str]) -> list[str]:
    """Move postfix words (marked ~) before the noun phrase they close: 航班 最多 -> most flights, 航班 数量 -> number of flights."""
    out: list[str] = []
    for word in words:
        if not word.endswith("~"):
            out.append(word)
            continue
        plain = word[:-1].strip()
        place = len(out)
        if plain in ("highest", "lowest") and (not out or out[-1] in _STOPS):
            out.append(plain)
            continue
        while place and out[place - 1] in ("of", "in", "have", "is"):
            place -= 1
        if place:
            place -= 1
            while place and _joins_noun(out, place):
                place -= 1
        if plain.startswith("number of") and place and out[place - 1] in ("most", "fewest"):
            place -= 1
        out.insert(place, plain)
    return _split_order(_before_than(out))


_STOPS = frozenset(
    "of is in have from to and or by each which what who how many how many distinct average most fewest highest lowest top last list show find only those between than "
    "more than less than at least at most same all not without".split()
) | {"how many", "more than", "less than", "at least", "at most", "number of", "how many distinct"}


def _joins_noun(out: list[str], place: int) -> bool:
    """Say whether the word before `place` belongs to the same noun: 'departure' before 'delay'."""
    before = out[place - 1]
    return before not in _STOPS and before.isascii() and before.islower() and before + " " + out[place] in _COMPOUNDS


_COMPOUNDS = {
    "departure delay",
    "arrival delay",
    "unit price",
    "air time",
    "tail number",
    "wind speed",
    "media type",
    "birth date",
    "postal code",
    "number of order",
}


def _before_than(out: list[str]) -> list[str]:
    """Undo 比 X 更: comparisons with words after are read as they stand."""
    return [word for word in out if word != "than"]


def _split_order(out: list[str]) -> list[str]:
    """Turn 'by X order' into 'order by X', and 'top X' without a number as it stands."""
    if "order" in out and "by" in out and out.index("by") < out.index("order"):
        place = out.index("by")
        rest = [word for index, word in enumerate(out) if index != out.index("order")]
        rest[place] = "sort by"
        return rest
    if "by" in out and any(word in ("descending", "ascending") for word in out[out.index("by") :]):
        out[out.index("by")] = "sort by"
    return out


def _tokens(words: list[str]) -> list[Token]:
    tokens: list[Token] = []
    for word in words:
        if word == "of":
            tokens.append(Token("的", "of", "word", len(tokens)))
        elif word.startswith("\0"):
            tokens.append(Token(word[1:], word[1:].lower(), "word", len(tokens)))
        else:
            tokens += [Token(token.text, token.word, token.kind, len(tokens) + place) for place, token in enumerate(tokenize(word))]
    return tokens
