package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// A mutant is one small change of the program.
type mutant struct {
	number int
	pkg    string // its import path
	file   string // from the root of the repository
	line   int
	fn     string // the function, or method, that it is in
	text   string // what is changed
	change string // into what
	nth    int    // if the function has the same several times
}

// name says which mutant it is, also after other lines have moved.
func (m *mutant) name() string {
	s := fmt.Sprintf("%s %s: %s: %s", m.file, m.fn, m.text, m.change)
	if m.nth > 1 {
		s += fmt.Sprintf(" #%d", m.nth)
	}
	return s
}

// An edit is text that is put into a file. It moves no line.
type edit struct {
	from, to int // what it replaces
	text     string
	class    int
	order    int
}

// Where several edits are at one place, what ends there comes first. What is put in front of an argument comes before what
// is put around it; and what is put around an expression comes before its first word, which may be another.
const (
	closes = iota
	inserts
	opens
	replaces
)

// A rewriter puts all mutants of one file into it.
type rewriter struct {
	path, pkg string // of the file, of the package
	source    []byte
	fset      *token.FileSet
	info      *types.Info
	self      *types.Package
	imported  map[string]string // path to name, of what the file imports
	keep      func(m *mutant) bool
	switched  string // the import path of package mutant

	fn      string
	next    *int // the number of the next mutant
	edits   []edit
	mutants []*mutant
	parents []ast.Node
	conds   map[ast.Expr]bool // whose mutants are those of a condition
	seen    map[string]int
}

func (r *rewriter) offset(p token.Pos) int { return r.fset.Position(p).Offset }

func (r *rewriter) textOf(n ast.Node) string {
	return string(r.source[r.offset(n.Pos()):r.offset(n.End())])
}

// mutant makes a mutant at n, or returns false if it is not wanted.
func (r *rewriter) mutant(n ast.Node, change string) (int, bool) {
	m := &mutant{number: *r.next, pkg: r.pkg, file: r.path, line: r.fset.Position(n.Pos()).Line, fn: r.fn, text: short(r.textOf(n)), change: change}
	key := m.name()
	r.seen[key]++
	m.nth = r.seen[key]
	if !r.keep(m) {
		return 0, false
	}
	*r.next++
	r.mutants = append(r.mutants, m)
	return m.number, true
}

func (r *rewriter) around(n ast.Node, before, after string) {
	from, to := r.offset(n.Pos()), r.offset(n.End())
	k := len(r.edits)
	r.edits = append(r.edits, edit{from, from, before, opens, k}, edit{to, to, after, closes, -k})
}

func (r *rewriter) instead(from, to token.Pos, text string) {
	r.edits = append(r.edits, edit{r.offset(from), r.offset(to), text, replaces, len(r.edits)})
}

// rewrite returns the file with its mutants, or nil if it has none.
func (r *rewriter) rewrite(f *ast.File) []byte {
	r.conds, r.seen, r.imported = map[ast.Expr]bool{}, map[string]int{}, map[string]string{}
	for _, spec := range f.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if obj, ok := r.info.Implicits[spec].(*types.PkgName); ok {
			r.imported[path] = obj.Name()
		} else if spec.Name != nil {
			r.imported[path] = spec.Name.Name
		}
	}
	for _, d := range f.Decls {
		r.fn = "var"
		if fd, ok := d.(*ast.FuncDecl); ok {
			r.fn = funcName(fd)
			if fd.Body == nil || silentFunc[fd.Name.Name] {
				continue
			}
		}
		ast.Inspect(d, r.visit)
	}
	if len(r.mutants) == 0 {
		return nil
	}
	return r.apply(f)
}

func funcName(fd *ast.FuncDecl) string {
	if fd.Recv == nil {
		return fd.Name.Name
	}
	t := fd.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + fd.Name.Name
		default:
			return fd.Name.Name
		}
	}
}

// What only people read.
var silentFunc = map[string]bool{"String": true, "GoString": true, "Error": true, "LogValue": true, "Format": true}
var silentCall = map[string]bool{
	"Debug": true, "Info": true, "Warn": true, "Error": true, "Log": true, "Logf": true, "Errorf": true, "Fatalf": true,
	"DebugContext": true, "InfoContext": true, "WarnContext": true, "ErrorContext": true, "LogAttrs": true,
	"Sprintf": true, "Sprint": true, "Printf": true, "Fprintf": true, "Fprintln": true, "Println": true, "trace": true, "Trace": true, "panic": true,
}

// What a test without the race detector hardly sees, or what hangs each test.
var keptCall = map[string]bool{"Lock": true, "Unlock": true, "RLock": true, "RUnlock": true, "Done": true, "Wait": true, "Add": true, "copy": true}

func calleeName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func (r *rewriter) silent(n ast.Node) bool {
	if s, ok := n.(*ast.ExprStmt); ok {
		n = s.X
	}
	c, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	if s, ok := c.Fun.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "errors" && s.Sel.Name == "New" {
			return true
		}
	}
	return silentCall[calleeName(c)]
}

// isConst reports whether x is a constant, which has its value when it is compiled.
func (r *rewriter) isConst(x ast.Expr) bool { return r.info.Types[x].Value != nil }

func (r *rewriter) typeOf(x ast.Expr) types.Type { return r.info.TypeOf(x) }

func (r *rewriter) isBool(x ast.Expr) bool {
	b, ok := r.typeOf(x).(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0 && !r.isConst(x)
}

// typeText is how the file writes t, or empty if it cannot.
func (r *rewriter) typeText(t types.Type) string {
	if t == nil {
		return ""
	}
	ok := true
	s := types.TypeString(types.Default(t), func(p *types.Package) string {
		if p == r.self {
			return ""
		}
		name, known := r.imported[p.Path()]
		ok = ok && known
		return name
	})
	if !ok {
		return ""
	}
	return s
}

// basic returns what kind of a value t is.
func basic(t types.Type) types.BasicInfo {
	if t == nil {
		return 0
	}
	if b, ok := t.Underlying().(*types.Basic); ok {
		return b.Info()
	}
	return 0
}

func (r *rewriter) parent() ast.Node {
	if len(r.parents) == 0 {
		return nil
	}
	return r.parents[len(r.parents)-1]
}

func (r *rewriter) visit(n ast.Node) bool {
	if n == nil {
		r.parents = r.parents[:len(r.parents)-1]
		return true
	}
	if !r.enter(n) {
		return false
	}
	r.parents = append(r.parents, n)
	return true
}

// enter makes the mutants of n. It returns false if there are none below it.
func (r *rewriter) enter(n ast.Node) bool {
	if r.silent(n) {
		return false
	}
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType, *ast.StructType, *ast.FuncType, *ast.InterfaceType, *ast.MapType, *ast.ChanType:
		return false
	case *ast.IfStmt:
		if !r.onlySilent(n) {
			r.condition(n.Cond, true)
		}
	case *ast.ForStmt:
		if n.Cond != nil {
			r.condition(n.Cond, false)
		}
	case *ast.CaseClause:
		if sw, ok := r.switchOf(); ok && sw.Tag == nil {
			for _, x := range n.List {
				r.condition(x, true)
			}
		}
	case *ast.ReturnStmt:
		r.returned(n)
	case *ast.ExprStmt:
		if c, ok := n.X.(*ast.CallExpr); ok && r.inList(n) && !keptCall[calleeName(c)] {
			r.removed(n)
		}
	case *ast.DeferStmt:
		if !keptCall[calleeName(n.Call)] && !r.silent(n.Call) {
			r.removed(n)
		}
	case *ast.AssignStmt:
		r.assigned(n)
	case *ast.IncDecStmt:
		if r.inList(n) {
			r.removed(n)
		}
	case *ast.BranchStmt:
		r.branch(n)
	case ast.Expr:
		return r.expression(n)
	}
	return true
}

// onlySilent reports whether an if decides only about what people read.
func (r *rewriter) onlySilent(n *ast.IfStmt) bool {
	if n.Else != nil || len(n.Body.List) == 0 {
		return false
	}
	for _, s := range n.Body.List {
		if !r.silent(s) {
			return false
		}
	}
	return true
}

func (r *rewriter) switchOf() (*ast.SwitchStmt, bool) {
	if len(r.parents) < 2 {
		return nil, false
	}
	sw, ok := r.parents[len(r.parents)-2].(*ast.SwitchStmt)
	return sw, ok
}

// inList reports whether n is a statement of a block, and not a part of another.
func (r *rewriter) inList(n ast.Stmt) bool {
	var list []ast.Stmt
	switch p := r.parent().(type) {
	case *ast.BlockStmt:
		list = p.List
	case *ast.CaseClause:
		list = p.Body
	case *ast.CommClause:
		list = p.Body
	}
	return slices.Contains(list, n)
}

// condition makes the mutants in which x never holds, and always.
func (r *rewriter) condition(x ast.Expr, always bool) {
	if !r.isBool(x) {
		return
	}
	r.conds[x] = true
	op := token.ILLEGAL
	if b, ok := ast.Unparen(x).(*ast.BinaryExpr); ok {
		op = b.Op // one half of it is gone in other mutants, which are harder to kill
	}
	after := ""
	if op != token.LOR {
		if n, ok := r.mutant(x, "never"); ok {
			after += fmt.Sprintf(" && !mutant.On(%d)", n)
		}
	}
	if op != token.LAND && always {
		if n, ok := r.mutant(x, "always"); ok {
			after += fmt.Sprintf(" || mutant.On(%d)", n)
		}
	}
	if after != "" {
		r.around(x, "((", ")"+after+")")
	}
}

// removed makes the mutant without a statement.
func (r *rewriter) removed(n ast.Stmt) {
	if k, ok := r.mutant(n, "removed"); ok {
		r.around(n, fmt.Sprintf("if !mutant.On(%d) { ", k), " }")
	}
}

// returned makes the mutants of what a function returns.
func (r *rewriter) returned(n *ast.ReturnStmt) {
	for _, x := range n.Results {
		if r.isBool(x) {
			r.negated(x)
		}
	}
	if len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	if id, ok := last.(*ast.Ident); ok && id.Name == "nil" {
		return
	}
	named, ok := r.typeOf(last).(*types.Named)
	if !ok || named.Obj().Pkg() != nil || named.Obj().Name() != "error" {
		return
	}
	if k, ok := r.mutant(n, "no error"); ok {
		r.around(last, fmt.Sprintf("mutant.Err(%d, ", k), ")")
	}
}

// negated makes the mutant in which x is the contrary. What has two halves has their
// mutants instead.
func (r *rewriter) negated(x ast.Expr) {
	if r.conds[x] {
		return
	}
	r.conds[x] = true
	switch y := ast.Unparen(x).(type) {
	case *ast.BinaryExpr:
		if y.Op == token.LAND || y.Op == token.LOR {
			return
		}
	}
	if k, ok := r.mutant(x, "negated"); ok {
		r.around(x, fmt.Sprintf("(mutant.On(%d) != (", k), "))")
	}
}

func (r *rewriter) assigned(n *ast.AssignStmt) {
	for _, x := range n.Rhs {
		if r.isBool(x) {
			switch ast.Unparen(x).(type) {
			case *ast.BinaryExpr, *ast.UnaryExpr:
				if u, ok := ast.Unparen(x).(*ast.UnaryExpr); !ok || u.Op == token.NOT {
					r.negated(x)
				}
			}
		}
	}
	if n.Tok == token.DEFINE || !r.inList(n) {
		return
	}
	if len(n.Lhs) == 1 {
		switch n.Lhs[0].(type) {
		case *ast.SelectorExpr, *ast.IndexExpr:
			r.removed(n)
			return
		}
	}
	if n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN {
		r.removed(n)
	}
}

// branch makes a break of a loop a continue, and the other way round.
func (r *rewriter) branch(n *ast.BranchStmt) {
	if n.Label != nil || !r.inList(n) {
		return
	}
	for i := len(r.parents) - 1; i >= 0; i-- {
		switch r.parents[i].(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			if f, ok := r.parents[i].(*ast.ForStmt); ok && f.Cond == nil && n.Tok == token.CONTINUE {
				return // the function may end with this loop, and then a break does not compile
			}
			other := map[token.Token]string{token.BREAK: "continue", token.CONTINUE: "break"}[n.Tok]
			if other == "" {
				return
			}
			if k, ok := r.mutant(n, other); ok {
				r.around(n, fmt.Sprintf("if mutant.On(%d) { %s }; ", k, other), "")
			}
			return
		case *ast.SwitchStmt, *ast.SelectStmt, *ast.TypeSwitchStmt, *ast.FuncLit:
			return
		}
	}
}

func (r *rewriter) expression(x ast.Expr) bool {
	if r.isConst(x) {
		r.constant(x)
		return false
	}
	switch x := x.(type) {
	case *ast.BinaryExpr:
		r.binary(x)
	case *ast.CallExpr:
		return r.call(x)
	case *ast.KeyValueExpr:
		if r.isBool(x.Value) {
			if _, ok := ast.Unparen(x.Value).(*ast.BinaryExpr); ok {
				r.negated(x.Value)
			}
		}
		if _, ok := x.Key.(*ast.Ident); ok { // of a struct, mostly
			r.parents = append(r.parents, x)
			ast.Inspect(x.Value, r.visit)
			r.parents = r.parents[:len(r.parents)-1]
			return false
		}
	case *ast.SelectorExpr:
		r.parents = append(r.parents, x)
		ast.Inspect(x.X, r.visit)
		r.parents = r.parents[:len(r.parents)-1]
		return false
	case *ast.CompositeLit:
		r.parents = append(r.parents, x)
		for _, e := range x.Elts {
			ast.Inspect(e, r.visit)
		}
		r.parents = r.parents[:len(r.parents)-1]
		return false
	}
	return true
}

var (
	boundaries = map[token.Token][2]string{
		token.LSS: {"Less", "<="}, token.LEQ: {"LessEqual", "<"},
		token.GTR: {"Greater", ">="}, token.GEQ: {"GreaterEqual", ">"},
	}
	sums = map[token.Token][2]string{token.ADD: {"Plus", "-"}, token.SUB: {"Minus", "+"}}
)

func (r *rewriter) binary(x *ast.BinaryExpr) {
	switch x.Op {
	case token.LAND, token.LOR:
		if !r.isBool(x) {
			return
		}
		gone := " || mutant.On(%d))"
		if x.Op == token.LOR {
			gone = " && !mutant.On(%d))"
		}
		for _, half := range []ast.Expr{x.X, x.Y} {
			// A half that has halves of its own: of these each is gone in a mutant.
			if b, ok := ast.Unparen(half).(*ast.BinaryExpr); ok && b.Op == x.Op {
				continue
			}
			if k, ok := r.mutant(half, "gone from "+short(r.textOf(x))); ok {
				r.around(half, "((", ")"+fmt.Sprintf(gone, k))
			}
		}
		return
	}
	f, ok := boundaries[x.Op]
	operands := types.IsOrdered
	if !ok {
		f, ok = sums[x.Op]
		operands = types.IsNumeric
		if ok && basic(r.typeOf(x))&types.IsComplex != 0 {
			return
		}
	}
	if !ok {
		return
	}
	t := r.typeOf(x.X)
	if r.isConst(x.X) {
		t = r.typeOf(x.Y)
	}
	if basic(t)&operands == 0 {
		return
	}
	text := r.typeText(t)
	if text == "" {
		return
	}
	if k, ok := r.mutant(x, f[1]); ok {
		r.around(x, fmt.Sprintf("mutant.%s[%s](%d, ", f[0], text, k), ")")
		r.instead(x.OpPos, x.OpPos+token.Pos(len(x.Op.String())), ",")
	}
}

// short is a text in one line of at most so many bytes.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 90 {
		s = strings.ToValidUTF8(s[:70], "") + " … " + strings.ToValidUTF8(s[len(s)-18:], "")
	}
	return s
}

// call makes the mutants of a call. It returns false if it has gone through what is below.
func (r *rewriter) call(x *ast.CallExpr) bool {
	switch f := x.Fun.(type) {
	case *ast.Ident:
		if _, ok := r.info.Uses[f].(*types.Builtin); ok {
			switch f.Name {
			case "make", "new":
				return false
			case "min", "max":
				if len(x.Args) > 1 && basic(r.typeOf(x))&types.IsOrdered != 0 {
					r.minmax(x, f)
				}
			}
		}
	case *ast.SelectorExpr:
		if f.Sel.Name == "Add" && len(x.Args) == 1 && types.TypeString(r.typeOf(x), nil) == "time.Time" {
			if k, ok := r.mutant(x, "minus"); ok {
				r.around(x.Args[0], fmt.Sprintf("mutant.Back(%d, ", k), ")")
			}
		}
	}
	return true
}

func (r *rewriter) minmax(x *ast.CallExpr, f *ast.Ident) {
	t := r.typeText(r.typeOf(x))
	if t == "" {
		return
	}
	name, other := "Min", "max"
	if f.Name == "max" {
		name, other = "Max", "min"
	}
	if k, ok := r.mutant(x, other); ok {
		r.instead(f.Pos(), f.End(), fmt.Sprintf("mutant.%s[%s]", name, t))
		first := x.Args[0].Pos()
		r.edits = append(r.edits, edit{r.offset(first), r.offset(first), fmt.Sprintf("%d, ", k), inserts, len(r.edits)})
	}
}

// constant makes the mutant of a number, or of a duration, which is not a name for
// something.
func (r *rewriter) constant(x ast.Expr) {
	t := r.typeOf(x)
	v := r.info.Types[x].Value
	duration := types.TypeString(t, nil) == "time.Duration"
	if _, plain := types.Default(t).(*types.Basic); !plain && !duration {
		return
	}
	if v.Kind() != constant.Int && v.Kind() != constant.Float || basic(t)&types.IsNumeric == 0 {
		return
	}
	if constant.Sign(v) == 0 && (duration || v.Kind() == constant.Float) {
		return
	}
	small := !duration && v.Kind() == constant.Int && constant.Compare(v, token.LSS, constant.MakeInt64(17))
	switch p := r.parent().(type) {
	case *ast.ReturnStmt:
		if constant.Sign(v) == 0 {
			return // mostly beside an error
		}
	case *ast.BinaryExpr:
		if constant.Sign(v) == 0 && (p.Op == token.EQL || p.Op == token.NEQ) {
			return // the whole condition has its mutants
		}
		if _, compared := boundaries[p.Op]; compared && small {
			return // which is the same as another operator
		}
		if p.Op == token.SHL || p.Op == token.SHR {
			return
		}
	case *ast.CaseClause:
		return // of a switch with a tag: a name for something
	case *ast.IndexExpr, *ast.SliceExpr:
		if !small {
			return
		}
	case *ast.CallExpr:
		if slices.Contains(p.Args, x) && len(p.Args) == 1 && r.info.Types[p.Fun].IsType() {
			return // a conversion
		}
	}
	text := r.typeText(t)
	if text == "" {
		return
	}
	change, formula := "twice", "*2"
	if small || constant.Sign(v) == 0 {
		change, formula = "one more", "+1"
	}
	if k, ok := r.mutant(x, change); ok {
		r.around(x, fmt.Sprintf("mutant.Either[%s](%d, ", text, k), fmt.Sprintf(", (%s)%s)", r.textOf(x), formula))
	}
}

// apply puts the edits into the text.
func (r *rewriter) apply(f *ast.File) []byte {
	at := r.offset(f.Name.End())
	r.edits = append(r.edits, edit{at, at, "; import " + strconv.Quote(r.switched), closes, 0})
	slices.SortStableFunc(r.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.class, b.class), cmp.Compare(a.order, b.order))
	})
	var out bytes.Buffer
	done := 0
	for _, e := range r.edits {
		out.Write(r.source[done:e.from])
		out.WriteString(e.text)
		done = e.to
	}
	out.Write(r.source[done:])
	return out.Bytes()
}
