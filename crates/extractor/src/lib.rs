//! What a page says: links, base, charset, directives, title; sitemaps.
