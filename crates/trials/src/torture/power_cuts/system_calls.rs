//! The system calls of a program, as recorded by `strace`.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// The system calls to record. Some calls change files in ways that `RecordedDiskChanges` does not
/// support. The trial records these too, so that it can fail if the program makes one.
const TRACED: &str = "trace=open,openat,creat,close,dup,dup2,dup3,fcntl,lseek,read,readv,write,\
     pwrite64,writev,pwritev,pwritev2,truncate,ftruncate,fallocate,copy_file_range,sendfile,\
     splice,mmap,io_uring_setup,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,\
     link,linkat,symlink,symlinkat,fsync,fdatasync";

/// Maximum size of a recorded write, in bytes; a longer one is an error.
const MAX_WRITE_BYTES: usize = 1 << 26;

/// Returns the options that make `strace` write the calls in [`TRACED`] to the file `trace`.
pub(super) fn options(trace: &Path) -> Vec<String> {
    // Record all written bytes in hexadecimal, but only the number of read bytes. Remove strace's
    // library path from the traced program, which uses the machine's own libraries.
    let fixed = "-f --seccomp-bpf -qq -e signal=none -xx -e raw=read,readv -E LD_LIBRARY_PATH";
    let mut options: Vec<String> = fixed.split(' ').map(str::to_owned).collect();
    let length = MAX_WRITE_BYTES.to_string();
    let trace = trace.display().to_string();
    options.extend(["-s", &length, "-e", TRACED, "-o", &trace].map(str::to_owned));
    options
}

/// A completed call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SystemCall<'a> {
    pub(super) name: &'a str,
    args: String,
    /// The return value, 0 or more.
    pub(super) result: u64,
    /// The line of the trace where the call began, from 1.
    pub(super) begun: usize,
    /// The line of the trace where the call ended, from 1.
    pub(super) ended: usize,
}

impl SystemCall<'_> {
    /// Returns all arguments as written.
    pub(super) fn args(&self) -> impl Iterator<Item = &str> {
        self.args.split(", ")
    }

    /// Returns the argument with the index `at`, or an empty string if there is none.
    pub(super) fn arg(&self, at: usize) -> &str {
        self.args().nth(at).unwrap_or_default()
    }

    /// Returns the argument with the index `at` as a number.
    pub(super) fn number(&self, at: usize) -> Result<u64> {
        number(self.arg(at)).with_context(|| format!("no number {at} in {}", self.short()))
    }

    /// Returns the last argument as a number.
    pub(super) fn last_number(&self) -> Result<u64> {
        let last = self.args().last().unwrap_or_default();
        number(last).with_context(|| format!("no number ends {}", self.short()))
    }

    /// Returns those arguments that are numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.args().filter_map(number)
    }

    /// Returns the decoded bytes of those arguments that are strings.
    pub(super) fn texts(&self) -> Result<Vec<Vec<u8>>> {
        let parts = self.args.split('"').skip(1).step_by(2);
        parts
            .map(|part| unescaped(part).with_context(|| self.short()))
            .collect()
    }

    /// Returns the bytes that the call has written, from its string arguments.
    pub(super) fn written(&self) -> Result<Vec<u8>> {
        let mut bytes = self.texts()?.concat();
        let count = usize::try_from(self.result)?;
        ensure!(bytes.len() >= count, "bytes are left out: {}", self.short());
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Returns whether `flag` is set in the argument with the index `at`.
    pub(super) fn has(&self, at: usize, flag: &str) -> bool {
        self.arg(at).split('|').any(|word| word == flag)
    }

    /// Returns a short form for messages.
    pub(super) fn short(&self) -> String {
        let args: String = self.args.chars().take(120).collect();
        format!("line {}: {}({args})", self.ended, self.name)
    }
}

/// Returns all successful calls, sorted by the time when they ended. A `close` counts as ended when
/// it begins, because another thread may be given the same descriptor before the `close` returns.
pub(super) fn calls(trace: &str) -> Result<Vec<SystemCall<'_>>> {
    let mut completed = Vec::new();
    let mut open: HashMap<&str, (usize, &str)> = HashMap::new();
    for (at, line) in (1..).zip(trace.lines()) {
        let Some((thread, rest)) = line.split_once(' ') else {
            bail!("line {at} is no line of a trace: {line:.80}");
        };
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        // The thread ended during the call.
        if rest.ends_with("<detached ...>") {
            open.remove(thread);
            continue;
        }
        if let Some(head) = rest.strip_suffix(" <unfinished ...>") {
            if head.starts_with("close(") {
                completed.extend(call(head, ") = 0", at, at)?);
            } else {
                open.insert(thread, (at, head));
            }
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let tail = resumed.split_once(" resumed>").map(|(_, tail)| tail);
            let tail = tail.with_context(|| format!("line {at} resumes nothing: {line:.80}"))?;
            if let Some((begun, head)) = open.remove(thread) {
                completed.extend(call(head, tail, begun, at)?);
            }
        } else {
            completed.extend(call(rest, "", at, at)?);
        }
    }
    Ok(completed)
}

/// Builds a call from `head`, the beginning of its line, and `tail`, the rest of an interrupted
/// call on a later line. Returns `None` if the call failed or never returned.
fn call<'a>(
    head: &'a str,
    tail: &str,
    begun: usize,
    ended: usize,
) -> Result<Option<SystemCall<'a>>> {
    let context = || format!("line {ended} is no call: {head:.80}");
    let (name, rest) = head.split_once('(').with_context(context)?;
    let whole = format!("{rest}{tail}");
    // No string argument contains ` = `, because all strings are in hexadecimal.
    let (args, result) = whole.rsplit_once(" = ").with_context(context)?;
    let args = args.trim_end().strip_suffix(')').with_context(context)?;
    let result = result.split(' ').next().and_then(number);
    Ok(result.map(|result| SystemCall {
        name,
        args: args.to_owned(),
        result,
        begun,
        ended,
    }))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Decodes a string of the trace. Bytes that are not in hexadecimal are literal.
fn unescaped(text: &str) -> Result<Vec<u8>> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() / 4);
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        if *first != b'\\' {
            out.push(*first);
            rest = after;
            continue;
        }
        let digits = after.strip_prefix(b"x").and_then(|hex| hex.get(..2));
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.context("a text with another escape than \\x")?);
        rest = &after[3..];
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::calls;

    #[test]
    fn an_interrupted_call_is_one_call() {
        let trace = "\
7  write(3, \"\\x61\\x0a\\xff\", 3 <unfinished ...>
8  fsync(4)                                = 0
7  <... write resumed>)                    = 2
8  openat(AT_FDCWD, \"a\", O_RDONLY)          = -1 ENOENT (No such file or directory)
9  read(0x3, 0x7ffe, 0x20)                 = 0x11
9  lseek(0, 1, 0x8 /* SEEK_??? */ <detached ...>
9  +++ exited with 0 +++
";
        let calls = calls(trace).unwrap();
        let seen: Vec<_> = calls
            .iter()
            .map(|call| (call.name, call.result, call.begun, call.ended))
            .collect();
        assert_eq!(
            seen,
            [("fsync", 0, 2, 2), ("write", 2, 1, 3), ("read", 17, 5, 5)]
        );
        assert_eq!(calls[1].written().unwrap(), b"a\n");
        assert_eq!(calls[2].number(0).unwrap(), 3);
    }

    #[test]
    fn a_descriptor_is_free_as_soon_as_its_close_begins() {
        let trace = "\
7  close(3 <unfinished ...>
8  openat(AT_FDCWD, \"a\", O_RDONLY) = 3
7  <... close resumed>) = 0
";
        let names: Vec<_> = calls(trace).unwrap().iter().map(|call| call.name).collect();
        assert_eq!(names, ["close", "openat"]);
    }

    #[test]
    fn a_truncated_write_is_an_error() {
        let calls = calls("7 write(3, \"abc\"..., 9) = 9\n").unwrap();
        let error = calls[0].written().unwrap_err().to_string();
        assert!(error.starts_with("bytes are left out: line 1"), "{error}");
    }
}
