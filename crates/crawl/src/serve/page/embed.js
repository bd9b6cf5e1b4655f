// One script tag puts a search box with results onto a page.
//
// Attributes of the tag, all optional:
//   data-target       CSS selector of the element to put the box into; by default the box is put
//                     after the tag
//   data-label        the field's name for screen readers
//   data-placeholder  the text in the empty field
//   data-limit        maximum number of results, 1 to 20
//   data-theme        light or dark; by default that of the page
//   data-shortcut     a key that focuses the field, such as /
//   data-dialog       off: Ctrl-K, or Command-K on a Mac, is left to the page
//   data-recent       off: the browser keeps no recent searches

mount(document.currentScript, serverAt(new URL(document.currentScript.src).origin));
