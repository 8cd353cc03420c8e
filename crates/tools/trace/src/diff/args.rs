//! The words of `headend trace diff`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::super::low::Usage;

pub(in super::super) const HELP: &str = "\
Compares two captures of one path: losses between them, delays, rewritten fields

Usage: headend trace diff [FLAG...] A B
       headend trace diff [FLAG...] ONE

A and B are captures of the same packets at two points. ONE is a capture with two
interfaces, as headend capture subscriber writes it. The packets are matched
through NAT, tunnels and offloads, and whatever the clocks say. docs/diff.md
explains the report.

      --json          one JSON object per lost packet, the summary last
      --parquet FILE  matched and lost packets as a Parquet file
      --html FILE     a page with delays over time and losses
      --same-clock    both captures have the same clock, or clocks that agree (PTP)
      --wait SECONDS  how long a packet may take (default 5)
  -q                  no progress
  -h, --help          this text

Exit status: 0 success; 1 a file is faulty, or the captures share no packets; 2 wrong usage.
";

/// Longest wait that may be asked for, in seconds.
const WAIT_MAX: f64 = 3600.0;

/// What was typed.
#[derive(Debug, Clone, Default)]
pub(super) struct Args {
    pub(super) files: Vec<PathBuf>,
    pub(super) help: bool,
    pub(super) json: bool,
    pub(super) parquet: Option<PathBuf>,
    pub(super) html: Option<PathBuf>,
    pub(super) same_clock: bool,
    pub(super) quiet: bool,
    /// In nanoseconds.
    pub(super) wait: Option<i64>,
}

impl Args {
    /// Reads the words after `diff`.
    ///
    /// # Errors
    /// A flag or the number of files is wrong.
    pub(super) fn parse(words: &[OsString]) -> Result<Args, Usage> {
        let mut args = Args::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(flag) = word.to_str().filter(|text| text.starts_with('-')) else {
                args.files.push(PathBuf::from(word));
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (flag, None),
            };
            let mut next = |what: &str| {
                let value = value.clone().or_else(|| words.next().cloned());
                value.ok_or_else(|| Usage(format!("{name} needs {what}")))
            };
            match name {
                "-h" | "--help" => args.help = true,
                "--json" => args.json = true,
                "--parquet" => args.parquet = Some(next("a file name")?.into()),
                "--html" => args.html = Some(next("a file name")?.into()),
                "--same-clock" => args.same_clock = true,
                "-q" => args.quiet = true,
                "--wait" => args.wait = Some(seconds(&next("a number of seconds")?)?),
                "--" => {
                    args.files.extend(words.map(PathBuf::from));
                    break;
                }
                "-" => {
                    return Err(Usage(
                        "diff reads its captures twice, so - (standard input) cannot be one".into(),
                    ));
                }
                _ => {
                    return Err(Usage(format!(
                        "{flag} is not a flag of diff (see headend trace diff --help)"
                    )));
                }
            }
        }
        if !args.help && !(1..=2).contains(&args.files.len()) {
            return Err(Usage(format!(
                "diff compares two captures, or the two interfaces of one: {} files were named",
                args.files.len()
            )));
        }
        Ok(args)
    }
}

fn seconds(text: &OsString) -> Result<i64, Usage> {
    let value = text.to_str().and_then(|text| text.parse::<f64>().ok());
    let value = value.filter(|value| *value >= 0.001 && *value <= WAIT_MAX);
    let value = value.ok_or_else(|| {
        Usage(format!(
            "--wait {}: write seconds, from 0.001 to {WAIT_MAX}",
            text.display()
        ))
    })?;
    Ok((value * 1e9) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, Usage> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Args::parse(&words)
    }

    #[test]
    fn flags_may_stand_anywhere_and_values_may_follow_an_equals_sign() {
        let args = parse("a.pcap --wait=1.5 --json b.pcap --parquet out").unwrap();
        assert_eq!(args.files.len(), 2);
        assert_eq!(args.wait, Some(1_500_000_000));
        assert!(args.json && args.parquet.is_some() && !args.same_clock);
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, part) in [
            ("a b c", "3 files"),
            ("a - ", "standard input"),
            ("a b --wait 0", "--wait 0"),
            ("a b --html", "--html needs"),
            ("a b --csv", "--csv is not a flag"),
        ] {
            let why = parse(line).unwrap_err().0;
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
