//! A polite web crawler with exclusion built in.

fn main() {}
