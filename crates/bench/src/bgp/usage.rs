//! Peak memory of a process, as the kernel reports it.

use anyhow::{Context, Result};

/// The peak resident memory of a process so far, in bytes.
///
/// # Errors
/// The process is gone, or `/proc` cannot be read.
pub(super) fn peak_of(pid: u32) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = peak_in(&text).context("a process without a peak of memory")?;
    Ok(kib * 1024)
}

fn peak_in(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_and_this_process_has_one() {
        assert_eq!(peak_in("VmPeak:\t 9 kB\nVmHWM:\t   812 kB\n"), Some(812));
        assert_eq!(peak_in("VmPeak:\t 9 kB\n"), None);
        assert!(peak_of(std::process::id()).unwrap() > 0);
    }
}
