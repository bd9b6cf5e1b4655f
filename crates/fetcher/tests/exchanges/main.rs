//! Exchanges with servers on loopback, good ones and bad ones.

mod addresses;
mod answers;
mod failures;
mod proxy;
mod support;
mod tls;
