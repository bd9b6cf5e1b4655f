// Ctrl-K on the server's own pages.

listenForDialog(serverAt(location.origin), {});
