//! Reads the directory of a crawl back: rows, requests, reports.
