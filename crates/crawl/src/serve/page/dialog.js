// Ctrl-K on the server's own pages.

listenForDialog(location.origin, {});
