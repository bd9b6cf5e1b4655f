// Runs in each frame in a world that the page doesn't see. Keeps the main frame at its document,
// and remembers where it wanted to go, and its closed shadow roots.
if (self === self.top && self.navigation) {
  self.wantedNavigation = null;
  self.navigation.addEventListener('navigate', (event) => {
    if (event.destination.sameDocument) return;
    if (self.wantedNavigation === null && event.formData === null) {
      self.wantedNavigation = event.destination.url;
    }
    event.preventDefault();
  });

  // The closed shadow roots by their hosts.
  self.closedShadowRoots = new WeakMap();
  self.addEventListener('crawl-root', ({ relatedTarget: marker }) => {
    marker?.addEventListener('crawl-root', () => {
      const root = marker.getRootNode();
      if (root instanceof ShadowRoot) self.closedShadowRoots.set(root.host, root);
    });
  });
}
