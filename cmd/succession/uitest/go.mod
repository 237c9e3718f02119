// What tries the page of "succession ui" in a browser. A module of its own, so that users of the
// library never see the browser's driver.
module github.com/succession-dev/succession/cmd/succession/uitest

go 1.26.7

replace (
	github.com/succession-dev/succession => ../../..
	github.com/succession-dev/succession/cmd/succession => ..
)

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/succession-dev/succession v0.1.0
	github.com/succession-dev/succession/cmd/succession v0.0.0-00010101000000-000000000000
)

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
