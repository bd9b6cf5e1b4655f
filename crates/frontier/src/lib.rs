//! What is known, waiting, leased and settled; durable.
