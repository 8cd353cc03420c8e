//! The files of /proc that show how busy a host is, as numbers. Every reader takes any text: a line that it does not
//! know counts for nothing.
//!
//! Sources: proc(5), and Linux's Documentation/accounting/psi.rst, admin-guide/iostats.rst and networking/.

use std::collections::BTreeMap;

/// CPUs, interfaces, disks or queues of one host; further ones are not read.
const ITEMS_MAX: usize = 4_096;

/// Time of one CPU since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Everything but idle and waiting for disks.
    pub busy: u64,
    /// Time that the hypervisor gave to others.
    pub steal: u64,
    /// All of it.
    pub total: u64,
}

/// `/proc/stat`: each CPU by its number.
pub fn cpus(text: &str) -> BTreeMap<u32, Cpu> {
    let lines = text.lines().take(ITEMS_MAX);
    let one = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        // user nice system idle iowait irq softirq steal; guests are in user.
        let times: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        let at = |place: usize| times.get(place).copied().unwrap_or(0);
        let total = times
            .iter()
            .fold(0_u64, |sum, time| sum.saturating_add(*time));
        let busy = total
            .saturating_sub(at(3))
            .saturating_sub(at(4))
            .saturating_sub(at(7));
        Some((
            number,
            Cpu {
                busy,
                steal: at(7),
                total,
            },
        ))
    };
    lines.filter_map(one).collect()
}

/// `/proc/stat`: threads that are ready to run, also those that run.
pub fn ready(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("procs_running "))?;
    line.trim().parse().ok()
}

/// `/proc/pressure/*`: microseconds in which at least one thread waited, since boot.
pub fn pressure_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let word = line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("total="))?;
    word.parse().ok()
}

/// `/proc/meminfo` in KiB, and `/proc/vmstat`: a name and a number on each line.
pub fn numbers(text: &str) -> BTreeMap<&str, u64> {
    fn one(line: &str) -> Option<(&str, u64)> {
        // The name ends at the first space.
        let (name, rest) = line.split_once([' ', '\t'])?;
        let number = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some((name.trim_end_matches(':'), number))
    }
    text.lines().take(ITEMS_MAX).filter_map(one).collect()
}

/// Packets of an interface since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interface {
    /// Bytes received and sent.
    pub bytes: [u64; 2],
    /// Frames with errors, received and sent.
    pub errors: [u64; 2],
    /// Frames dropped because a buffer of the receiver was full, and frames to be sent that were dropped. The column
    /// `drop` of received frames is left out: it also counts frames of protocols that nothing here listens to.
    pub dropped: [u64; 2],
}

/// `/proc/net/dev`: each interface by its name.
pub fn interfaces(text: &str) -> BTreeMap<String, Interface> {
    let one = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<u64> = counters
            .split_ascii_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let at = |place: usize| counters.get(place).copied().unwrap_or(0);
        let sum = |a: usize, b: usize| at(a).saturating_add(at(b));
        let interface = Interface {
            bytes: [at(0), at(8)],
            errors: [at(2), at(10)],
            dropped: [at(4), sum(11, 12)],
        };
        (counters.len() >= 16).then(|| (name.trim().to_owned(), interface))
    };
    text.lines().take(ITEMS_MAX).filter_map(one).collect()
}

/// `/proc/net/softnet_stat`: packets that a CPU's backlog dropped, and times that its budget ended, of all CPUs.
pub fn backlog(text: &str) -> [u64; 2] {
    let mut sums = [0_u64; 2];
    for line in text.lines().take(ITEMS_MAX) {
        let words = line.split_ascii_whitespace().skip(1);
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = sum.saturating_add(u64::from_str_radix(word, 16).unwrap_or(0));
        }
    }
    sums
}

/// `/proc/net/snmp` and `/proc/net/netstat`: a line of names, then a line of numbers, by `Udp.RcvbufErrors`.
pub fn counters(text: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let lines: Vec<&str> = text.lines().take(ITEMS_MAX).collect();
    for pair in lines.chunks(2) {
        let [names, values] = pair else { continue };
        let (Some((group, names)), Some((of, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        if group != of {
            continue;
        }
        for (name, value) in names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace())
        {
            // Some are -1: without a limit.
            if let Ok(value) = value.parse() {
                found.insert(format!("{group}.{name}"), value);
            }
        }
    }
    found
}

/// Sockets of `/proc/net/udp` and `/proc/net/udp6`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sockets {
    /// How many there are.
    pub count: u64,
    /// Bytes that wait for programs to read them.
    pub waiting: u64,
    /// Datagrams dropped because a buffer was full.
    pub drops: u64,
}

/// `/proc/net/udp`: its sockets together.
pub fn sockets(text: &str) -> Sockets {
    let mut all = Sockets::default();
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let queue = words.get(4).and_then(|word| word.split_once(':'));
        let waiting = queue.and_then(|(_, receive)| u64::from_str_radix(receive, 16).ok());
        let drops = words.get(12).and_then(|word| word.parse().ok());
        let (Some(waiting), Some(drops)) = (waiting, drops) else {
            continue;
        };
        all.count = all.count.saturating_add(1);
        all.waiting = all.waiting.saturating_add(waiting);
        all.drops = all.drops.saturating_add(drops);
    }
    all
}

/// `/proc/sys/fs/file-nr`: open files, and how many there may be.
pub fn files(text: &str) -> Option<[u64; 2]> {
    let words: Vec<u64> = text
        .split_ascii_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    match words.as_slice() {
        [open, _, most] => Some([*open, *most]),
        _ => None,
    }
}

/// `/proc/PID/limits`: how many files the process may open; `None` if there is no limit.
pub fn open_files_limit(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let rest = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// `/proc/net/stat/nf_conntrack`: connections that were not made because the table was full, of all CPUs.
pub fn conntrack_drops(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    // `insert_failed` is left out: it also counts two packets of one new connection that met.
    let wanted = ["drop", "early_drop"];
    let places: Vec<usize> = (0..names.len())
        .filter(|at| wanted.contains(&names[*at]))
        .collect();
    let mut sum = 0_u64;
    for line in lines.take(ITEMS_MAX) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        for place in &places {
            let count = words
                .get(*place)
                .and_then(|word| u64::from_str_radix(word, 16).ok());
            sum = sum.saturating_add(count.unwrap_or(0));
        }
    }
    Some(sum)
}

/// Time of a disk since boot, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disk {
    /// With at least one request under way.
    pub busy_ms: u64,
    /// Of all requests together, also while they waited.
    pub waited_ms: u64,
}

/// `/proc/diskstats`: each device that has served a request, by its name; partitions too.
pub fn disks(text: &str) -> BTreeMap<String, Disk> {
    let one = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let at = |place: usize| words.get(place)?.parse::<u64>().ok();
        let disk = Disk {
            busy_ms: at(12)?,
            waited_ms: at(13)?,
        };
        let is_virtual = ["loop", "ram", "zram"]
            .iter()
            .any(|start| words[2].starts_with(start));
        (!is_virtual && disk.busy_ms > 0).then(|| (words[2].to_owned(), disk))
    };
    text.lines().take(ITEMS_MAX).filter_map(one).collect()
}

/// A queue of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Interface, kind, handle without its colon, and parent: `eth0 htb 1 root`. Queues that the kernel made have no
    /// handle, so that only their parents differ.
    pub name: String,
    /// Packets dropped since it was made.
    pub drops: u64,
    /// Packets that wait now.
    pub waiting: u64,
    /// Bytes that were sent.
    pub bytes: u64,
}

/// What `tc -j -s qdisc show` prints. Queues with queues below them count what is below.
pub fn queues(text: &str) -> Vec<Queue> {
    let items: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    let one = |item: &serde_json::Value| {
        let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| item[key].as_u64().unwrap_or(0);
        let parent = if item["root"] == true {
            "root".to_owned()
        } else {
            text("parent")
        };
        let name = format!(
            "{} {} {} {parent}",
            text("dev"),
            text("kind"),
            text("handle").trim_end_matches(':')
        );
        let plain: String = name.chars().filter(|c| !c.is_control()).take(60).collect();
        (!text("kind").is_empty()).then(|| Queue {
            name: plain,
            drops: number("drops"),
            waiting: number("qlen"),
            bytes: number("bytes"),
        })
    };
    items.iter().take(ITEMS_MAX).filter_map(one).collect()
}
