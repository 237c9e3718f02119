// Package uitest tries the page of "succession ui" in a real browser, without a window. It is a module
// of its own, so that users of the library never see the browser's driver. It has tests only.
//
// The browser is Chromium, as in Debian's package chromium, or whichever of its names is in PATH. Where
// there is none the tests fail, and say what to install. All that it may talk to is the page, on this
// machine.
//
// The tests also make the pictures of docs/ui.md:
//
//	go test -run TestPictures -pictures ../../../docs
package uitest
