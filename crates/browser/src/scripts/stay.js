// Runs in each frame in a world that the page doesn't see. Keeps the main frame at its document,
// and remembers where it wanted to go, whether it reacts to scrolling, and its closed shadow roots.
if (self === self.top && self.navigation) {
  // A navigation within this time (in ms) replaces the one before: the browser would still wait for
  // the answer. After that, the browser would have left the page.
  const ANSWER_TIME = 100;
  let wanted;
  self.wantedNavigation = null;
  self.navigation.addEventListener('navigate', (event) => {
    const { destination: { sameDocument, url }, formData } = event;
    if (sameDocument) return;
    event.preventDefault();
    // In a browser, the page stays if another program opens the address, or a file is saved.
    const isSaved = event.downloadRequest !== null;
    const isPage = /^https?:/.test(url) && formData === null && event.navigationType !== 'reload';
    const time = performance.now();
    if (isPage && (!wanted || (!isSaved && (wanted.isSaved || time - wanted.time < ANSWER_TIME)))) {
      wanted = { isSaved, time };
      self.wantedNavigation = url;
    }
  });

  self.reactsToScrolling = false;
  self.addEventListener('crawl-scroll', () => { self.reactsToScrolling = true; });

  // The closed shadow roots by their hosts.
  self.closedShadowRoots = new WeakMap();
  self.addEventListener('crawl-root', ({ relatedTarget: marker }) => {
    marker?.addEventListener('crawl-root', () => {
      const root = marker.getRootNode();
      if (root instanceof ShadowRoot) self.closedShadowRoots.set(root.host, root);
    });
  });
}
