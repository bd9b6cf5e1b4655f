// Defines the functions that scroll the page, in a world that the page doesn't see.
(() => {
  const isScrollable = (element) => element.scrollHeight > element.clientHeight
    && /auto|scroll/.test(getComputedStyle(element).overflowY);

  // Returns the element that a reader scrolls: the root, or an element in the middle of a page that
  // is as tall as the window.
  const findScroller = () => {
    const root = document.scrollingElement;
    if (!root || root.scrollHeight > innerHeight) return root;
    let element = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    while (element && !isScrollable(element)) element = element.parentElement;
    return element;
  };

  let scroller;
  // Scrolls down by one screen. Returns false if the page was at its end, or if scrolling can't
  // change it.
  self.scrollDown = () => {
    if (!self.reactsToScrolling && !document.querySelector('[onscroll]')) return false;
    scroller ??= findScroller();
    const top = scroller?.scrollTop;
    scroller?.scrollBy({ top: scroller.clientHeight, behavior: 'instant' });
    return scroller?.scrollTop > top;
  };
  self.scrollToTop = () => scroller.scrollTo({ top: 0, behavior: 'instant' });
})();
