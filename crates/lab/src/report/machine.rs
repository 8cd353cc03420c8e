//! Describes the machine on which a benchmark ran.

use super::{CoreUse, CoreWitness};
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// Machine and time of a run; what could not be read is `unknown` or absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineInfo {
    /// The processor's model name.
    pub cpu_model: String,
    /// Number of cores this process may use.
    pub cores: usize,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Whether the machine is a guest of a hypervisor.
    pub virtualised: bool,
    /// The kernel's name and release.
    pub kernel: String,
    /// The load average over one, five and fifteen minutes.
    pub load_average: Option<[f64; 3]>,
    /// Use of the cores during the run, by this and other processes.
    pub others: Option<CoreUse>,
    /// When this was read, in seconds since 1970 in UTC.
    pub taken_unix_s: u64,
    /// headend's version.
    pub version: String,
}

impl MachineInfo {
    /// Describes this machine now, without its use.
    pub fn read() -> Self {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = file("/proc/cpuinfo");
        let kernel = file("/proc/sys/kernel/osrelease");
        Self {
            cpu_model: value_of(&cpu, "model name").unwrap_or("unknown").into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: value_of(&file("/proc/meminfo"), "MemTotal").and_then(kibibytes),
            virtualised: value_of(&cpu, "flags")
                .is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
            kernel: match kernel.trim() {
                "" => "unknown".into(),
                release => format!("Linux {release}"),
            },
            load_average: load(&file("/proc/loadavg")),
            others: None,
            taken_unix_s: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_secs()),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Describes this machine now, with the use that `witness` measured.
    pub fn read_with(witness: CoreWitness) -> Self {
        Self {
            others: witness.finish(),
            ..Self::read()
        }
    }

    /// The description as lines for people.
    pub fn lines(&self) -> Vec<String> {
        let cores = if self.cores == 1 {
            "1 core".into()
        } else {
            format!("{} cores", self.cores)
        };
        let mut machine = format!("{}, {cores}", self.cpu_model);
        if let Some(bytes) = self.memory_bytes {
            machine += &format!(", {:.1} GiB", bytes as f64 / f64::from(1 << 30));
        }
        machine += &format!(", {}", self.kernel);
        if self.virtualised {
            machine += ", a virtual machine";
        }
        let mut lines = vec![machine];
        let others = match &self.others {
            Some(used) => used.to_string(),
            None => "who else used the cores is not known".into(),
        };
        match self.load_average {
            Some([one, five, _]) => {
                lines.push(format!(
                    "load average {one:.2} over 1 minute, {five:.2} over 5; {others}"
                ));
            }
            None => lines.push(others),
        }
        lines.push(format!(
            "{}, headend {}",
            utc(self.taken_unix_s),
            self.version
        ));
        lines
    }
}

/// The text after `key :` in the first such line of a file from `/proc`.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

/// `N kB`, which the kernel means as kibibytes, in bytes.
fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

fn load(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split(' ').map_while(|t| t.parse::<f64>().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

/// Seconds since 1970 as `2025-11-21 01:18 UTC`.
fn utc(unix_s: u64) -> String {
    let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
    let is_leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    // 400 years have 146,097 days; whole such cycles are skipped before counting years.
    let (mut year, mut rest) = (1970 + days / 146_097 * 400, days % 146_097);
    while rest >= 365 + u64::from(is_leap(year)) {
        rest -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 1;
    for length in lengths {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    format!(
        "{year}-{month:02}-{:02} {hour:02}:{minute:02} UTC",
        rest + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_calendar_s() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(utc(1_735_689_599), "2024-12-31 23:59 UTC");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn files_of_proc_are_read_as_the_kernel_writes_them() {
        let cpu =
            "processor\t: 0\nmodel name\t: A CPU @ 3.0GHz: fast\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(value_of(cpu, "model name"), Some("A CPU @ 3.0GHz: fast"));
        assert_eq!(value_of(cpu, "bogomips"), None);
        assert_eq!(kibibytes("16384 kB"), Some(16_777_216));
        assert_eq!(kibibytes("lots"), None);
        assert_eq!(load("0.08 0.07 0.02 1/99 1234\n"), Some([0.08, 0.07, 0.02]));
        assert_eq!(load(""), None);
    }

    #[test]
    fn a_machine_that_tells_nothing_is_still_described() {
        let unknown = MachineInfo {
            cpu_model: "unknown".into(),
            cores: 1,
            memory_bytes: None,
            virtualised: false,
            kernel: "unknown".into(),
            load_average: None,
            others: None,
            taken_unix_s: 0,
            version: "0.1.0".into(),
        };
        let lines = unknown.lines();
        assert_eq!(lines[0], "unknown, 1 core, unknown");
        assert_eq!(lines[1], "who else used the cores is not known");
        assert!(MachineInfo::read().cores >= 1);
    }
}
