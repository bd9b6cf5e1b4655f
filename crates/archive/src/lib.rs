//! WARC, CDXJ and row files: names, rotation, fsync, receipts.
