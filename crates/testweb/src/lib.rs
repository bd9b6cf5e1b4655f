//! A seeded, misbehaving web on loopback with a request log.
