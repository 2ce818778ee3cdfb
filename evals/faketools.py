import json, sqlite3, duckdb, re
class Fake:
    def __init__(self,path,kind='sqlite'):
        self.kind=kind
        if kind=='sqlite':
            self.c=sqlite3.connect(f'file:{path}?mode=ro',uri=True); self.c.text_factory=lambda b:b.decode('utf8','replace')
        else: self.c=duckdb.connect(path,read_only=True)
        self.load()
    def q(self,s,*a): return self.c.execute(s,a).fetchall() if a else self.c.execute(s).fetchall()
    def load(self):
        self.t={}
        if self.kind=='sqlite':
            for n,k in self.q("select name,type from sqlite_master where type in('table','view') and name not like 'sqlite_%'"):
                cols=[]; fks={}
                for r in self.q(f'pragma foreign_key_list("{n}")'):
                    fks[r[3].lower()]=f'{r[2]}.{r[4] or "id"}'
                try:
                    for r in self.q(f'pragma table_info("{n}")'):
                        d={'name':r[1],'type':r[2]}
                        if r[5]: d['primary_key']=True
                        if r[1].lower() in fks: d['references']=fks[r[1].lower()]
                        cols.append(d)
                    rows=self.q(f'select count(*) from "{n}"')[0][0]
                except Exception as e: continue
                self.t[n]=dict(name=n,kind=k,rows=rows,columns=cols)
        else:
            for n,k in self.q("select table_name,table_type from information_schema.tables"):
                cols=[]
                pk=set(); fks={}
                for ct,cc,txt in self.q("select constraint_type,constraint_column_names,constraint_text from duckdb_constraints() where table_name=?",n):
                    if ct=='PRIMARY KEY': pk|=set(cc)
                    if ct=='FOREIGN KEY':
                        m=re.search(r'REFERENCES (\w+)\s*\(([^)]*)\)',txt)
                        for a,b in zip(cc,m[2].split(',')): fks[a]=f'{m[1]}.{b.strip()}'
                for cn,ty in self.q("select column_name,data_type from information_schema.columns where table_name=? order by ordinal_position",n):
                    d={'name':cn,'type':ty}
                    if cn in pk: d['primary_key']=True
                    if cn in fks: d['references']=fks[cn]
                    cols.append(d)
                self.t[n]=dict(name=n,kind='table' if k=='BASE TABLE' else 'view',rows=self.q(f'select count(*) from "{n}"')[0][0],columns=cols)
    def safe(self,v):
        if isinstance(v,bytes): return f'<{len(v)} bytes>'
        if isinstance(v,(int,float,str)) or v is None: return v[:120] if isinstance(v,str) else v
        return str(v)
    def __call__(self,name,args):
        try: return json.dumps(getattr(self,name)(**args),ensure_ascii=False),'success'
        except Exception as e: return json.dumps({'error':{'class':'query_failed','message':str(e)}}),'error'
    def list_tables(self,search='',page=1):
        ts=[t for t in self.t.values() if search.lower() in t['name'].lower() or any(search.lower() in c['name'].lower() for c in t['columns'])]
        p=ts[(page-1)*50:page*50]
        return dict(dialect=self.kind,tables=[dict(name=t['name'],kind=t['kind'],rows=t['rows'],columns=[c['name'] for c in t['columns']]) for t in p],page=page,pages=(len(ts)+49)//50,total=len(ts))
    def describe_tables(self,names):
        out=[]
        for n in names:
            t=self.t[n]
            out.append(dict(t,sample_rows=[[self.safe(v) for v in r] for r in self.q(f'select * from "{n}" limit 3')]))
        return dict(tables=out,note='sample')
    def find_values(self,text,table='',column='',limit=20):
        m=[]
        for t in self.t.values():
            if t['kind']!='table': continue
            for c in t['columns']:
                ty=c['type'].upper()
                if 'BLOB' in ty or not ('CHAR' in ty or 'TEXT' in ty or ty=='' or 'BOOL' in ty): continue
                n=t['name'];cn=c['name']
                op='LIKE' if self.kind=='sqlite' else 'ILIKE'
                for v,k in self.q(f'select "{cn}",count(*) from "{n}" where cast("{cn}" as varchar) {op} ? group by 1 order by 2 desc limit 20','%'+text+'%'):
                    if not isinstance(v,str): continue
                    how='exact' if v==text else 'case' if v.lower()==text.lower() else 'partial'
                    m.append(dict(table=n,column=cn,value=self.safe(v),count=k,match=how))
        m.sort(key=lambda x:('exact','case','partial').index(x['match']))
        return dict(matches=m[:limit],more=len(m)>limit,searched_columns=1,note='x')
    def run_sql(self,sql):
        cur=self.c.execute(sql); rows=cur.fetchall()
        return dict(row_count=len(rows),columns=[d[0] for d in cur.description],types=['x']*len(cur.description),shown=min(20,len(rows)),rows=[[self.safe(v) for v in r] for r in rows[:20]],note='n',sql=sql,ms=1)
