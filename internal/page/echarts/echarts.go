// Package echarts embeds the script that draws the charts of the tool's pages, so that the pages need no network.
package echarts

import _ "embed"

// Version and SHA256 identify the embedded file; README.md states its origin.
const (
	Version = "6.1.0"
	SHA256  = "61f13280aba3161f77fc801bf5f9c786f55f10432153a0683fc5cc0700b013d5"
)

// Script is the text of echarts.common.min.js. It does not contain `</script`, so a page may include it unchanged.
//
//go:embed echarts.common.min.js
var Script string
