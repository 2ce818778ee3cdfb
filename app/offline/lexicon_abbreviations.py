"""Spell out the abbreviations that companies use in the names of tables and columns."""

# ruff: noqa: E501 - word lists read best as long lines of plain words

from typing import Final

# word: its abbreviations. An abbreviation that is a word of its own (use, ref, long) or stands for several is in ALTERNATIVES instead.
_PLAIN: Final = """
    accident: accdt | account: acct accnt | acquisition: acq acqn | acreage: acr | active: actv | actual: actl | address: addr adr | administration: admn | admission: admis | admitted: admt | advertising: advt | agent: agt
    agreement: agrmt agmt | aircraft: acft | airline: airln | airport: arpt aprt | album: albm | allowance: allw | altitude: alt | amount: amt amnt | annual: annl | answer: answ ans | apartment: apt aptmt | application: applcn
    appointment: appt apptmt | approval: aprvl | approved: apprv aprvd apvd | arrival: arvl arrvl | arrived: arvd | artist: artst | assistant: asst | attendance: attn attnd attd | attorney: atty | attribute: attr | author: auth athr | available: avail avl avlbl
    avenue: ave | average: avg | baggage: bgg | balance: bal blnc | barrel: bbl brl | bathroom: bthrm bathrm | bedroom: bdrm bedrm bdr | begin: beg bgn | beneficiary: benef | birth: brth bth | birthday: bday bdate bdt | bonus: bns
    booked: bkd | booking: bkg bkng | bottle: btl | box: bx | branch: brnch brn | budget: bdgt budg bgt | building: bldg | built: blt | business: biz | campaign: cmpgn | cancelled: canc cncl cxl cnl | capacity: cap capac cpcty
    captain: cpt | cargo: crg | case: cse | catch: ctch | category: catg ctgry ctg | certificate: cert certif | channel: chnl | character: chr | checked: chkd | city: cty | claim: clm | class: cls clss
    client: clnt clt | closed: clsd | code: cd cde | comment: cmt cmnt cmmt | commission: commn cmsn | commissioned: commd | committee: cmte cttee | company: co cmpny compny | complaint: cmplnt cmplt complnt | completed: cmpltd | condition: cndn | configuration: config cfg
    constructed: constr | construction: constrn | consumption: consm cnsmp | contact: cntct | container: cntr contnr ctr | contract: contr cntrct ctrct | contractor: contrctr | coordinator: coord | corporation: corp | costume: cstm | country: ctry cntry | coupon: cpn
    course: crs crse | court: crtr | created: crtd crt crdt | credit: crd | crew: crw | currency: curr ccy crncy | current: crnt | customer: cust cus custmr cstmr | date: dt dte | date of birth: dobirth | day: dy | decommissioned: decomm decommd
    deductible: dedbl | deduction: ded | defendant: defn dfdt | deleted: dltd | delivered: dlvd | delivery: dlvry dlv deliv dlvy dely | departed: dptd | department: dept dpt dptmt deptmt | departure: dptr deptr dprt | depth: dpth | description: desc descr dscr dsc descrip | destination: dest dstn destn
    development: devt devl | diagnosis: diag dx diagn | diameter: diam dia dmtr | director: dirr drctr | discharge: dschg disch dischg | discount: dsct dscnt | distance: dstnc | distribution: distn dstrb | distributor: distrib | district: dstr distr | division: dvsn dvn | doctor: dctr
    document: docmt | donation: donat | donor: dnr | dozen: dz doz | driver: drvr | duration: dur durn | edition: edn edtn | education: edu educ | effective: eff efctv | electricity: elec electr | elevation: elev | email: eml
    emergency: emerg emer | employee: emp empl emply | employer: emplr | employment: emplmt | end: endd | energy: enrg | engineer: engr engnr | enrollment: enrl enrlmt | environment: env | episode: epsd epis | equipment: equip eqpt eqp | established: estab
    estimate: estm | estimated: est estd | event: evt evnt | evidence: evid | exchange: exch | executive: exec | exhibition: exhib exhb | expense: exp expns | experience: exper | expiry: expr expy xpry | fax: fx | first: fst frst
    flag: flg | flight: flt flgt | floor: flr | foundation: fdn fndn | freight: frt | frequency: freq frq | gallon: gall | gender: gndr gend | generation: genr | genre: gnr | goods: gds | grade: grd
    graduation: grad | gross: grs | group: grp | guest: gst | harbor: hrbr | harvest: hrvst harv | headquarters: hq | height: ht hgt hght | hired: hird | holiday: hol hldy | hospital: hosp | hour: hr hrs
    hourly: hrly hly | household: hh hhld hshld hhold | humidity: humd rhum | identifier: ident idn | image: img | incident: incdt incid | indicator: indic | inspection: insp inspn inspec | inspector: inspr | installation: instl instln | installed: instd | instructor: instr
    insurance: insur | interest: intrst | inventory: invt invty invntry | invoice: invc | irrigation: irrig | issued: issd | item: itm | judgment: judgmt | kilogram: kgs | kilometer: kms | label: lbl | laborer: lbr
    landlord: lndlrd | language: lang | last: lst | latitude: lat lati | lawyer: lwyr | lease: lse | length: len lngth lgth lgt | level: lvl | license: lic licn lcns | line: ln | livestock: lvstk | location: locn lctn locat
    longitude: lng longi | machine: mach mchn | maintenance: maint mnt mntc mtce | management: mgmt mngmt | manager: mgr mngr mgt | manufacturer: mfr mfgr mnfr manuf manufr | manufacturing: mfg | margin: mrgn mgn | marital: mrtl | market: mrkt | marketing: mktg mkt | married: marr
    resolved: rslv | on hand: oh onhnd | pickup: pkup pckup pkp | master: mst mstr mast | header: hdr | detail: dtl dtls | material: matl mtrl mtl | maximum: max | medication: med meds | medicine: medc | meeting: mtg | member: mbr memb membr | membership: mbrshp | merchandise: mdse | message: msg | meter: mtr | method: meth mthd mtd | minute: mins mnt
    mobile: mob mobl | model: mdl | modified: modf mdfd | month: mth mnth mths | monthly: mthly mnthly moly | mortgage: mtge mrtg | name: nm nme | nationality: natl natnl ntlty | neighborhood: nbrhd | network: ntwk netw | next: nxt | number: nbr nmbr numb nr cntno
    odometer: odo | offense: offns | office: ofc | officer: offcr | opened: opnd opn | operator: oper opr | order: ordr odr ord | ordered: ordd | organization: orgn orgz orgzn | original: orig | overtime: ovt ovtm | owner: ownr
    package: pkg pckg | packaging: pkging | pallet: plt pllt | parameter: param parm | parcel: prcl | part: prt | participant: particip partcp ptcpt | passenger: pax psgr | patient: ptnt | payment: pymt pmt paymt pmnt | penalty: pnlty | percent: perc prct
    percentage: pctg pctge | performance: prfm perfm | person: pers prsn | physician: phys | piece: pcs pce | plaintiff: pltf plntf | planned: plnd pln | plant: plnt | platform: plat pltfm | policy: plcy | population: popn popul | position: posn pstn
    postcode: pcode pstcd | power: pwr | precipitation: precip prcp precp | premium: prem | prescription: rx presc | president: pres | pressure: prs psr | previous: prev | price: prc | primary: prim pri | principal: princ | priority: prio prty
    procedure: proc | product: prdt prdct prd | production: prodn | profit: prft | program: prog pgm prgm | project: proj prj | property: prop ppty | province: prov prv | publication: publn | publisher: publ pblshr | pump: pmp | purchase: purch prch purc
    qualification: qualf qualif | quality: qlty qual | quantity: qty qnty qnt quan qtty | quarter: qtr qrtr | question: qstn ques qn | rain: rn | rainfall: rnfl | ranking: rnk rkg | rating: rtg rtng ratg | reading: rdg rdng | receipt: rcpt rcp | received: rcvd recd rcv
    registration: regn regist | relationship: reltn rltn rel | remark: rmk rmrk | repair: rpr | replacement: repl replc | report: rpt rprt | reported: rptd | request: rqst reqst | required: reqd rqd | requirement: reqmt | reservation: rsv rsvn resvn resrv | reserved: rsvd resv
    resolved: rslvd reslvd | response: resp rspn | result: res rslt rsl | retirement: retmt | return: rtn rtrn | returned: rtnd retd | revenue: revn | review: rvw revw | revision: revn | room: rm | route: rte | salary: sal slry
    sale: sls | sample: smpl smp | schedule: sched schdl | scheduled: schd | school: schl sch | score: scr | season: seasn ssn | secondary: scnd | section: sect | security: secur | segment: seg sgmt | semester: sem smstr | sequence: seq
    serial: srl | service: svc srv serv svce | session: sess | severity: sev svrty | shelf: shlf | shipment: shpmt shipmt | shipped: shpd | shipping: shpg shpng | signature: sig sgn | signed: sgnd | snow: snw | source: src srce
    species: spp spcs | specification: specs | speed: spd | sponsor: spons spnsr | standard: std stnd | start: stt | station: stn stnn | status: stat sts stts | stock: stk | storage: strg | street: str strt | student: stdnt stu
    subject: subj sbj | subscriber: subscrb | subscription: subscr | subtotal: subtot | supervisor: supv supvr spvr suprv spv | supplier: splr sup | surgery: surg | survey: srvy svy | tank: tnk | tax: tx | teacher: tchr tch | technician: techn
    telephone: telno | phone: msisdn | temperature: temp tempr | tenant: tnnt tnt | terminal: trml | terminated: trmd | territory: terr | text: txt | ticket: tkt tckt tix | time: tm tme | total: tot ttl totl | training: trng trn | transaction: txn trx trxn tran
    treatment: trtmt trt trmt | trip: trp | truck: trck | type: typ tp | unit: unt un uom | updated: upd updt updtd | user: usr | vacation: vac vacn | value: val vlu | valve: vlv | variance: var | vat: vt
    vehicle: veh vhcl vehcl | vendor: vend vndr vnd | venue: vnu | verdict: vrdct | version: vers | vessel: vsl vssl | victim: vctm | violation: viol violn | visitor: vstr | voltage: volt | volume: vol | volunteer: vlntr
    voucher: vchr | wage: wg | warehouse: whse wh wrhs whs | water: wtr | weather: wthr | week: wk wks | weekly: wkly | weight: wt wgt wght | width: wdth | windspeed: wspd | witness: wtns | year: yr yrs
    yearly: yrly | zip: zipcd | zone: zn | satisfaction: csat | through: thru | prescriber: prscr prescr | handset: hset | index: idx indx | pickup: pkup | subscription: subsn | expenditure: expndr
"""
# An abbreviation that may be several words, or is a word of its own: a word of the question finds the column by any of them.
_SEVERAL: Final = """
    ac: account aircraft | acc: account accident | act: actual account activity actor activation activated | adm: admission administration admitted | admin: administration administrator | adv: advance advertising | aff: affiliation | allow: allowance | amb: ambulance | ann: annual announcement | app: application appointment | appr: approved approximate appraised | approx: approximate | apt: apartment appointment airport
    ar: area arrival | arr: arrival arrears | attend: attendance attendee | aud: audience audit | auth: author authority authorized | bal: balance | ben: benefit beneficiary | bg: background | bill: billing | bkg: background | bld: build built building blood | br: branch brand bedroom | brd: brand board breed | brk: break broker
    bth: bath birth | bus: business | cal: calorie calendar | camp: campaign campus | cand: candidate | cap: capital | capt: captain | cat: category catalog | cert: certificate certified | ch: channel chapter charge | chan: channel | chg: charge change | chk: check | circ: circulation
    cit: citizen city | cmpl: completed complaint | cmplt: completed complaint | compl: completed complaint complete | cl: class | cls: class close | cnt: count | co: company county country | comm: commission communication comment commissioned community | con: contract condition | cond: condition | conf: conference confirmed confidence | cons: consumption | cr: credit | crt: court | ct: count | cur: current currency
    curr: current currency | cust: custom | ded: deduction | deduct: deduction deductible | del: delivery deleted | dep: departure department deposit dependent | desg: designation | desig: designation | dev: development deviation device | dia: diameter | dir: director direction directory | disc: discount disc | dist: distance district distribution | div: division dividend
    dly: daily delay | doc: document doctor | dr: doctor debit driver | drv: driver drive | ed: edition editor education | ee: employee | eff: effective efficiency | ele: elevation element | eng: engineer engine english | enroll: enrollment | env: environment envelope | er: employer | est: estimated established | exp: expiry expense experience expected
    ext: extension external | fac: facility faculty factory | fam: family | fd: food fund | fl: floor | fn: function | ft: fulltime foot feet | gal: gallery | gen: generation gender general | gov: government governor | gr: group grade gross | hd: head | hly: hourly | hol: holiday
    hosp: hospitality | id: identifier | incl: included | ind: indicator industry individual | init: initial | ins: insurance inspection inserted | inst: institution instructor instrument installed installation | int: interest international internal | inv: invoice inventory investment | iss: issue issued | iv: interview | jr: junior | kg: kilogram | km: kilometer
    lab: laboratory labor | lev: level | lib: library | lic: license | lim: limit | loc: location locality | maj: major | mar: marital margin market | mat: material maturity | med: medication medium medical | mem: member memory | ment: mentor | mfg: manufactured | mgt: management
    min: minute minimum | misc: miscellaneous | mkt: market marketing | mo: month | mob: mobile | mod: model modified module | mon: month monday | msr: measure measurement | mtg: mortgage meeting | mtr: meter | mun: municipality | mvmt: movement | nat: nationality national | nbhd: neighborhood
    neigh: neighborhood | no: number | obj: object objective | obs: observation | occ: occupation occupancy occurrence | off: office officer | op: operation operator opened | opp: opportunity | opt: option | org: organization | orig: original origin | par: parameter parent | part: participant | pat: patient
    pay: payment | pct: percent precinct | pd: paid period | per: period person | perf: performance performed | ph: phone | phn: phone | pkg: parking package | pl: place plan | pm: payment | po: purchase order | pol: policy | pop: population popularity | por: portion
    pos: position | poss: possession | pr: price | prac: practice | pref: preference | prep: preparation | pres: president present prescription | press: pressure | pri: priority primary | pric: price | pro: professional | prob: probation probability problem | prod: product production producer | prof: professor profession profile
    prop: property proportion | psn: person position | pt: parttime patient point part | pts: points | pub: publisher publication published | pur: purchase | qual: quality qualification | rd: road read | rec: record received receipt | recv: received | ref: reference referral referee | reg: region registration registered register | rel: release relation | rep: representative report repair
    req: request required | res: result reservation resident residence resource | resp: response responsible | ret: return retail retired retirement | rev: revenue review revision | rt: rate route right | sal: salary sale sales | sch: school schedule | sec: second section security | sect: sector section | sem: semester seminar | ser: service serial series | shp: shop ship shape | sit: site situation
    sp: species special | spec: specialty specification species | spon: sponsor | sq: square | st: street state start station | stat: status statistic | std: standard student | stor: storage store | str: strength string | stu: studio | sub: subject subscription | subs: subscription subscriber | sup: supplier supervisor supply | supp: supplier support
    sur: surname | surf: surface | sym: symbol | sz: size | tar: target tariff | tech: technician technology technical | tel: telephone phone | temp: temperature temporary | tgt: target | thk: thickness | tmp: temporary temperature | tr: treatment training | trans: transaction transport transfer | trav: travel
    trk: track truck tracking | tz: timezone | uni: university | univ: university | use: usage consumption | usg: usage | util: utility utilization | vac: vaccine vacancy vacation | vax: vaccine vaccination | ven: venue vendor | ver: version | vis: visit visitor | vol: volume volunteer | vw: view views
    ctr: container contract center counter | awd: award awarded | ot: overtime | ovr: overtime overall | publ: publication publisher published | expd: expenditure expense expected | mos: month months
    wd: ward width | web: website | wo: work order | wrk: work worker | yld: yield | yy: year
"""


def _rows(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for word, _, rest in (part.partition(":") for line in text.strip().splitlines() for part in line.split("|")):
        found[word.strip()] = (*found.get(word.strip(), ()), *rest.split())  # a word may stand in several rows
    return found


ALTERNATIVES: Final = _rows(_SEVERAL)
"""What an abbreviation may stand for where it has several readings, or where it is a word too."""


def _expanded() -> dict[str, str]:
    found: dict[str, str] = {}
    for word, shorts in _rows(_PLAIN).items():
        for short in shorts:
            if len(ALTERNATIVES.get(short, (word,))) == 1:
                found.setdefault(short, word)
    return found


EXPANDED: Final = _expanded()
"""The one word that an abbreviation in a name stands for."""

# What is written beside a measure: square and cubic metres, alone or in a time.
SQUARED: Final[dict[str, str]] = {
    "sq_ft": "sqft", "sq_m": "sqm", "sq_mi": "sqmi", "sq_km": "sqkm", "m2": "sqm", "sqm": "sqm", "km2": "sqkm", "sqkm": "sqkm", "ft2": "sqft", "m3": "m3", "cbm": "m3", "m3d": "m3", "m3h": "m3", "m3s": "m3", "cum": "m3",
}  # fmt: skip
