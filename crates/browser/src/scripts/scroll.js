// Defines the functions that scroll the page, in a world that the page doesn't see.
(() => {
  const isScrollable = (element) => element.scrollHeight > element.clientHeight
    && /auto|scroll/.test(getComputedStyle(element).overflowY);

  // Returns the element at a point, even within shadow roots.
  const elementAt = (x, y) => {
    let element = document.elementFromPoint(x, y);
    for (;;) {
      const root = element?.shadowRoot;
      const inner = root?.elementFromPoint(x, y);
      // The inner element may also be the host, or an element around it.
      if (inner?.getRootNode() !== root || !root) return element;
      element = inner;
    }
  };
  const parentOf = (element) => element.assignedSlot ?? element.parentElement
    ?? element.getRootNode().host;

  // Returns the element that a reader would scroll: the root, or an element in the middle of the
  // window that hides more than the root does.
  const findScroller = () => {
    const hiddenHeight = (element) => element.scrollHeight - element.clientHeight;
    let scroller = document.scrollingElement;
    let element = elementAt(innerWidth / 2, innerHeight / 2);
    for (; element; element = parentOf(element)) {
      const isTaller = !scroller || hiddenHeight(element) > hiddenHeight(scroller);
      if (isTaller && isScrollable(element)) scroller = element;
    }
    return scroller;
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
