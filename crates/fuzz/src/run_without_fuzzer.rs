//! Runs a fuzz target without a fuzzer, on the inputs of its corpus and on random changes of these
//! inputs. Tests of other crates include this file.

use std::path::Path;

#[path = "corpus_line_escape.rs"]
mod escape;

use escape::{escaped, unescaped};

/// Maximum number of changes to one input.
const MAX_CHANGES: usize = 4;
/// A piece to remove, repeat or copy from another input is shorter than this many bytes.
const MAX_PIECE: usize = 24;

/// Calls `check` for each input in the target's corpus, and then for `changed` randomly changed
/// inputs. The changes are the same in each run.
pub(crate) fn run_without_fuzzer(target: &str, changed: usize, check: fn(&[u8])) {
    let inputs = corpus(target);
    for input in &inputs {
        shown_if_it_fails(input, check);
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..changed {
        let mut input = inputs[random.below(inputs.len())].clone();
        for _ in 0..=random.below(MAX_CHANGES) {
            let source = &inputs[random.below(inputs.len())];
            change(&mut input, source, &mut random);
        }
        shown_if_it_fails(&input, check);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "pure crates read no file except in tests"
)]
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let file = folder.join(target).with_extension("txt");
    let text = std::fs::read_to_string(&file);
    let text = text.unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let inputs = text.lines().map(|line| {
        unescaped(line).unwrap_or_else(|| panic!("{}: not an input: {line}", file.display()))
    });
    let inputs: Vec<_> = inputs.collect();
    assert!(!inputs.is_empty(), "{} is empty", file.display());
    inputs
}

fn change(input: &mut Vec<u8>, source: &[u8], random: &mut Random) {
    let from = random.below(input.len() + 1);
    let to = (from + random.below(MAX_PIECE)).min(input.len());
    match random.below(4) {
        0 => drop(input.drain(from..to)),
        1 => {
            let piece = input[from..to].to_vec();
            drop(input.splice(from..from, piece));
        }
        2 => {
            let start = random.below(source.len() + 1);
            let end = (start + random.below(MAX_PIECE)).min(source.len());
            drop(input.splice(from..from, source[start..end].iter().copied()));
        }
        _ => {
            if let Some(byte) = input.get_mut(from) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

/// Calls `check` for an input. If `check` panics, prints the input in the format of the corpus and
/// panics too.
#[allow(clippy::print_stderr, reason = "the output of a failed test")]
fn shown_if_it_fails(input: &[u8], check: fn(&[u8])) {
    if let Err(why) = std::panic::catch_unwind(|| check(input)) {
        eprintln!("the input: {}", escaped(input));
        std::panic::resume_unwind(why);
    }
}

/// A generator of random numbers: xorshift64 (Marsaglia, "Xorshift RNGs").
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
