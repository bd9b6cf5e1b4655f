//! The ring: one loop over one closed set of events.
