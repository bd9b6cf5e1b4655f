//! When a host may next be asked.
