//! The scheduler in virtual time: single rules, drawn worlds, restarts, speed.

mod check;
mod durable;
mod fair;
mod gates;
mod property;
mod robots;
mod rules;
mod speed;
mod stage;
mod world;
