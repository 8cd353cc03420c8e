//! Measures how much other processes used the cores while a benchmark ran.
//!
//! The kernel counts each core's time in `/proc/stat`, and each process's in `/proc/PID/stat`, in
//! the same ticks (proc(5)). Busy time that is not ours was used by other processes.

use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// How the cores' time was used during a run, in percent of all cores together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CoreUse {
    /// This process, its children and the processes watched by id.
    pub own_percent: f64,
    /// All other processes.
    pub others_percent: f64,
    /// Time that the hypervisor gave to other guests.
    pub stolen_percent: f64,
    /// Number of cores.
    pub cores: usize,
    /// One tick of the kernel's clock, in percent of the run: the expected error.
    pub tick_percent: f64,
}

impl fmt::Display for CoreUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = match self.cores {
            1 => "the one core".into(),
            2 => "the two cores".into(),
            n => format!("the {n} cores"),
        };
        write!(
            f,
            "others used {:.1} % of {cores} during this run",
            self.others_percent
        )?;
        if self.stolen_percent >= 0.05 {
            write!(f, ", the hypervisor took {:.1} %", self.stolen_percent)?;
        }
        write!(f, ", this benchmark {:.1} %", self.own_percent)?;
        if self.tick_percent >= 1.0 {
            write!(
                f,
                " (the run was short: give or take {:.0} %)",
                self.tick_percent.ceil()
            )?;
        }
        Ok(())
    }
}

/// Watches the cores from [`CoreWitness::start`] to [`CoreWitness::finish`].
#[derive(Clone, Debug)]
pub struct CoreWitness {
    roots: Vec<u32>,
    start: Option<Sample>,
}

impl CoreWitness {
    /// Starts to watch; this process and its children count as our own.
    pub fn start() -> Self {
        let roots = vec![std::process::id()];
        let start = Sample::read(&roots);
        Self { roots, start }
    }

    /// Counts process `pid` and its children as our own too, from its start.
    ///
    /// This is for a peer that was started after the watch began and has detached itself from us.
    pub fn watch(&mut self, pid: u32) {
        self.roots.push(pid);
    }

    /// The use since the start; `None` if `/proc` cannot be read or no time has passed.
    ///
    /// A child that was waited for is counted through its parent. A process that detached itself
    /// and ended unseen is counted among the others.
    pub fn finish(self) -> Option<CoreUse> {
        CoreUse::between(&self.start?, &Sample::read(&self.roots)?)
    }
}

/// The kernel's counts at one moment, in ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    busy: u64,
    stolen: u64,
    idle: u64,
    own: u64,
    cores: usize,
}

impl Sample {
    fn read(roots: &[u32]) -> Option<Self> {
        // Processes are read first, so that their use during the reading counts as use by others;
        // the reverse order could make it negative.
        let own = own_ticks(roots, &read_processes());
        parse_cores(&std::fs::read_to_string("/proc/stat").ok()?, own)
    }
}

impl CoreUse {
    fn between(start: &Sample, end: &Sample) -> Option<Self> {
        let busy = end.busy.saturating_sub(start.busy);
        let stolen = end.stolen.saturating_sub(start.stolen);
        let total = busy + stolen + end.idle.saturating_sub(start.idle);
        if total == 0 {
            return None;
        }
        let own = end.own.saturating_sub(start.own).min(busy);
        let percent = |ticks: u64| ticks as f64 * 100.0 / total as f64;
        Some(Self {
            own_percent: percent(own),
            others_percent: percent(busy - own),
            stolen_percent: percent(stolen),
            cores: end.cores,
            tick_percent: percent(1),
        })
    }
}

/// Reads the `cpu` line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn parse_cores(text: &str, own: u64) -> Option<Sample> {
    let cores = text
        .lines()
        .filter(|l| l.starts_with("cpu") && !l.starts_with("cpu "))
        .count();
    let line = text.lines().find(|l| l.starts_with("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map_while(|t| t.parse().ok())
        .collect();
    let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
    if ticks.len() < 4 {
        return None;
    }
    // Guest time, in the ninth and tenth field, is already part of user and nice.
    let busy = at(0) + at(1) + at(2) + at(5) + at(6);
    Some(Sample {
        busy,
        stolen: at(7),
        idle: at(3) + at(4),
        own,
        cores: cores.max(1),
    })
}

/// A process as `/proc/PID/stat` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// User and system time of the process, and of the children it has waited for.
    ticks: u64,
}

fn read_processes() -> HashMap<u32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse_process(&text)?))
    })
    .collect()
}

/// Reads parent (field 4), utime, stime, cutime and cstime (14 to 17) of `/proc/PID/stat`.
fn parse_process(text: &str) -> Option<Process> {
    // The name, in parentheses, may itself contain spaces and parentheses.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|t| t.parse::<u64>().unwrap_or(0))
        .sum();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        ticks,
    })
}

/// The ticks of `roots` and all their living descendants.
fn own_ticks(roots: &[u32], processes: &HashMap<u32, Process>) -> u64 {
    let is_own = |mut pid: u32| {
        // Parents are read at slightly different moments, so a loop is possible; the number of
        // passes is limited.
        for _ in 0..64 {
            if roots.contains(&pid) {
                return true;
            }
            match processes.get(&pid) {
                Some(process) => pid = process.parent,
                None => return false,
            }
        }
        false
    };
    processes
        .iter()
        .filter(|(pid, _)| is_own(**pid))
        .map(|(_, p)| p.ticks)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 20 50 800 30 5 15 7 40 0\n\
                        cpu0 50 10 25 400 15 3 7 3 20 0\n\
                        cpu1 50 10 25 400 15 2 8 4 20 0\n\
                        intr 1234\n";

    #[test]
    fn guest_time_is_not_counted_twice_and_waiting_for_a_disc_is_idle() {
        let sample = parse_cores(STAT, 9).unwrap();
        assert_eq!(
            sample,
            Sample {
                busy: 190,
                stolen: 7,
                idle: 830,
                own: 9,
                cores: 2
            }
        );
        assert_eq!(parse_cores("intr 5\n", 0), None);
        assert_eq!(parse_cores("cpu  1 2\n", 0), None);
    }

    #[test]
    fn busy_time_that_is_not_ours_is_the_others() {
        let start = Sample {
            busy: 1_000,
            stolen: 0,
            idle: 5_000,
            own: 100,
            cores: 2,
        };
        let end = Sample {
            busy: 1_531,
            stolen: 20,
            idle: 5_449,
            own: 600,
            cores: 2,
        };
        let used = CoreUse::between(&start, &end).unwrap();
        assert!((used.others_percent - 3.1).abs() < 1e-9, "{used:?}");
        assert_eq!(
            used.to_string(),
            "others used 3.1 % of the two cores during this run, the hypervisor took 2.0 %, \
             this benchmark 50.0 %"
        );
        assert_eq!(CoreUse::between(&start, &start), None);
    }

    #[test]
    fn a_count_that_rounds_above_the_total_gives_no_negative_share() {
        let start = Sample {
            busy: 10,
            stolen: 0,
            idle: 10,
            own: 5,
            cores: 1,
        };
        let end = Sample {
            busy: 12,
            stolen: 0,
            idle: 28,
            own: 8,
            cores: 1,
        };
        let used = CoreUse::between(&start, &end).unwrap();
        assert_eq!(used.others_percent, 0.0);
        assert!(
            used.to_string()
                .ends_with("(the run was short: give or take 5 %)"),
            "{used}"
        );
    }

    #[test]
    fn a_process_name_may_hold_blanks_and_parentheses() {
        let text = "42 (a) b (c) S 7 1 1 0 -1 0 0 0 0 0 11 12 13 14 20 0 1 0 99\n";
        assert_eq!(
            parse_process(text),
            Some(Process {
                parent: 7,
                ticks: 50
            })
        );
        assert_eq!(parse_process("42 (a) S"), None);
        assert_eq!(parse_process(""), None);
    }

    #[test]
    fn descendants_are_our_own_and_siblings_are_not() {
        let process = |parent, ticks| Process { parent, ticks };
        let all = HashMap::from([
            (1, process(0, 1_000)),
            (10, process(1, 1)),
            (11, process(10, 2)),
            (12, process(11, 4)),
            (20, process(1, 8)),
            (21, process(20, 16)),
            (30, process(31, 32)),
            (31, process(30, 64)),
        ]);
        assert_eq!(own_ticks(&[10], &all), 7);
        assert_eq!(own_ticks(&[10, 21], &all), 23);
    }

    #[test]
    fn this_process_is_found_in_proc() {
        let processes = read_processes();
        assert!(processes.contains_key(&std::process::id()));
        assert!(Sample::read(&[std::process::id()]).is_some());
    }
}
