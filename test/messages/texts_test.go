package messages

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// said is a text of the sources as the page has it, and where it is said.
type said struct {
	text string
	// where is file and line, from the root of the repository.
	where string
	// wraps says that the text only goes before a cause, which says what is wrong.
	wraps bool
}

// file is the part of where before the line.
func (s said) file() string {
	file, _, _ := strings.Cut(s.where, ":")
	return file
}

// blank stands for what is known only when a message is made.
const blank = "..."

var (
	quotedVerb = regexp.MustCompile(`%q`)
	verb       = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z]`)
	blanks     = regexp.MustCompile(`\.\.\.(\s*\.\.\.)+`)
	spaces     = regexp.MustCompile(`\s+`)
	word       = regexp.MustCompile(`[A-Za-z]{2,}`)
	wrapping   = regexp.MustCompile(`^[^%]*(%[a-z][^%]*)*: %w$`)
)

// normal is a text as the page writes it: blanks for verbs, none twice.
func normal(text string) string {
	text = strings.ReplaceAll(text, "%%", "%")
	text = quotedVerb.ReplaceAllString(text, `"`+blank+`"`)
	text = verb.ReplaceAllString(text, blank)
	text = spaces.ReplaceAllString(text, " ")
	return strings.TrimSpace(blanks.ReplaceAllString(text, blank))
}

// minWords is how many words make a message. One word alone is a name, or goes before a cause.
const minWords = 2

// isMessage says whether a text is prose. Names of fields, labels and files have no spaces.
func isMessage(text string) bool {
	return strings.Contains(text, " ") && words(text) >= minWords
}

// isFragment says whether a text is part of a message: resource "...".
func isFragment(text string) bool {
	return words(text) > 0 && (strings.Contains(text, blank) || strings.Contains(text, " "))
}

func words(text string) int {
	return len(word.FindAllString(strings.ReplaceAll(text, blank, " "), -1))
}

// textsOf collects what a file says.
func textsOf(files *token.FileSet, file *ast.File) []said {
	c := &collector{files: files}
	ast.Walk(c, file)
	return c.found
}

// collector walks over a file, around all that is no message.
type collector struct {
	files *token.FileSet
	found []said
}

// Visit implements ast.Visitor.
func (c *collector) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.ImportSpec, *ast.CaseClause:
		return c.visitCase(node)
	case *ast.Field:
		ast.Walk(c, n.Type)
		return nil // its tag is none
	case *ast.CallExpr:
		return c.visitCall(n)
	case *ast.CompositeLit:
		if isQuiet(typeName(n.Type)) {
			return nil
		}
	case *ast.IndexExpr:
		ast.Walk(c, n.X)
		return nil
	case *ast.BinaryExpr:
		return c.visitBinary(n)
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			c.add(n, unquoted(n))
		}
	}
	return c
}

// visitCase goes into a clause's statements: what is compared there is no message.
func (c *collector) visitCase(node ast.Node) ast.Visitor {
	clause, is := node.(*ast.CaseClause)
	if !is {
		return nil
	}
	for _, condition := range clause.List {
		if _, literal := condition.(*ast.BasicLit); !literal {
			ast.Walk(c, condition)
		}
	}
	for _, statement := range clause.Body {
		ast.Walk(c, statement)
	}
	return nil
}

// visitCall leaves out what is said to no user: logs, flags' descriptions, patterns and texts to look for.
func (c *collector) visitCall(call *ast.CallExpr) ast.Visitor {
	name := callee(call)
	ast.Walk(c, call.Fun)
	for _, argument := range call.Args {
		_, literal := argument.(*ast.BasicLit)
		if isQuiet(name) || literal && isComparing(name) {
			continue
		}
		ast.Walk(c, argument)
	}
	return nil
}

func (c *collector) visitBinary(n *ast.BinaryExpr) ast.Visitor {
	switch n.Op {
	case token.ADD:
		if text, has := folded(c, n); has {
			c.add(n, text)
			return nil
		}
	case token.EQL, token.NEQ:
		for _, side := range []ast.Expr{n.X, n.Y} {
			if _, literal := side.(*ast.BasicLit); !literal {
				ast.Walk(c, side)
			}
		}
		return nil
	}
	return c
}

// folded is a sum of strings with blanks for what is no literal; what is in those is looked at by itself.
func folded(c *collector, expression ast.Expr) (text string, has bool) {
	switch e := expression.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, hasLeft := folded(c, e.X)
			right, hasRight := folded(c, e.Y)
			return left + right, hasLeft || hasRight
		}
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return unquoted(e), true
		}
	case *ast.ParenExpr:
		return folded(c, e.X)
	}
	ast.Walk(c, expression)
	return blank, false
}

func (c *collector) add(node ast.Node, text string) {
	at := c.files.Position(node.Pos())
	where := fmt.Sprintf("%s:%d", strings.TrimPrefix(at.Filename, root+"/"), at.Line)
	told := said{text: normal(text), where: where, wraps: wrapping.MatchString(text)}
	if isMessage(told.text) || isFragment(told.text) {
		c.found = append(c.found, told)
	}
}

func unquoted(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		panic(err) // the parser has accepted it
	}
	return text
}

// callee is the name of what is called, with the package or variable before it: klog.Info, errors.New.
func callee(call *ast.CallExpr) string { return typeName(call.Fun) }

func typeName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		return typeName(e.Fun) + "()"
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	default:
		return ""
	}
}

// quiet are calls and types whose texts no user is shown: logs, panics, flags' and metrics' descriptions, patterns.
var quiet = regexp.MustCompile(`(^|\.)(Info|Error|InfoS|ErrorS|HandleError|HandleErrorWithContext|HandleErrorWithLogger|HandleCrash)$` +
	`|^panic$|^klog\.|^regexp\.|(^|\.)[A-Za-z0-9]*VarP?$|^cobra\.Command$|(Opts|Options)$|(^|\.)(NewGVec|NewDesc)$|Sscanf$|^scanned$`)

func isQuiet(name string) bool { return quiet.MatchString(name) }

// isComparing says whether a call looks for its literals, or cuts them off.
func isComparing(name string) bool { return strings.HasPrefix(name, "strings.") }
