// Package messages keeps docs/errors.md true. Its tests collect every text of the product's sources that a person may
// be shown, and every reason and state of the API, and compare them with the page, both ways. They read sources and
// the page, and run nothing.
package messages
