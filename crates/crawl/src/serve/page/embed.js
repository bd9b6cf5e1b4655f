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

const tag = document.currentScript;
const server = new URL(tag.src).origin;

const settle = () => {
  const options = tag.dataset;
  const root = shadowHost(options.theme);
  const box = new Box(server, options, false);
  root.append(box.element);
  // A click or the focus elsewhere puts the results away.
  root.host.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !root.host.contains(event.relatedTarget)) box.open(false);
  });
  document.addEventListener("pointerdown", (event) => {
    if (!event.composedPath().includes(root.host)) box.open(false);
  });
  if (options.shortcut) {
    document.addEventListener("keydown", (event) => {
      if (event.key !== options.shortcut || isWriting(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      box.focus();
    });
  }
  if (options.dialog !== "off") listenForDialog(server, options);
  const target = options.target ? document.querySelector(options.target) : null;
  if (target) target.append(root.host);
  else if (tag.parentNode && tag.parentNode !== document.head) tag.after(root.host);
  else document.body.prepend(root.host);
};

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", settle);
else settle();
