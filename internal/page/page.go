// Package page writes the frame of the command line tool's HTML pages. Each page is one self-contained file that opens
// without a network, in light and dark mode. A policy in the page's head makes the browser refuse to load anything
// else.
//
// User text goes through html/template, or through textContent in scripts. The unescaped types of Page (template.CSS,
// template.JS, template.HTML) are only for the tool's own text.
package page

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed page.css
var style string

// Page is the content of a page.
type Page struct {
	Title    string        // title of the window, and the first heading
	Subtitle string        // one line below the heading
	Style    template.CSS  // follows the shared style
	Body     template.HTML // between the heading and the end
	Script   template.JS   // at the end of the body
}

// Style returns the shared style sheet. Its colors are the variables --ink, --paper, --panel, --line, --soft,
// --accent, --good, --warn, --bad, --mark and the series --c0 to --c7. Each has a light and a dark value.
func Style() template.CSS { return template.CSS(style) } // #nosec: a constant of the program

var frame = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{{.Title}}</title>
<style>{{.Shared}}{{.Style}}</style>
</head>
<body>
<header class="top"><h1>{{.Title}}</h1>{{with .Subtitle}}<p class="soft">{{.}}</p>{{end}}</header>
{{.Body}}
{{with .Script}}<script>{{.}}</script>{{end}}
</body>
</html>
`))

// Write writes the whole page.
func Write(w io.Writer, p Page) error {
	return frame.Execute(w, struct {
		Page
		Shared template.CSS
	}{p, Style()})
}
