// The snippet: one script tag puts a search box with results onto a page.
//
// Attributes of the tag, all optional:
//   data-target       CSS selector of the element that takes the box; by default it stands
//                     where the tag stands
//   data-label        what the field is called for those who do not see it
//   data-placeholder  what stands in the empty field
//   data-limit        results at most, 1 to 20
//   data-theme        light or dark; by default that of the page
//   data-shortcut     a key that moves to the field, such as /
//   data-dialog       off: Ctrl-K, or Command-K on a Mac, is left to the page
//   data-recent       off: the browser keeps no recent searches

mount(document.currentScript, serverAt(new URL(document.currentScript.src).origin));
