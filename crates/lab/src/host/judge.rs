//! The rows: each is a figure of two readings, held against its threshold.

use std::collections::BTreeMap;

use super::read;
use super::{Aspect, Reading, Row, Verdict};

/// A threshold that Gregg's checklist gives.
const GREGG: &str = "Gregg, USE method: Linux checklist";
/// Gregg: at 70 % and more, queueing may be seen already within the interval.
const GREGG_70: &str = "Gregg, USE method: utilisation of 70 % may hide shorter times of 100 %";
/// A threshold that nobody publishes.
const OWN: &str = "headend's own choice";
/// The kernel's table is nearly full.
const FULL: &str = "headend's own choice: the kernel refuses at 100 %";

/// What is measured, and against what.
struct Kind {
    resource: &'static str,
    aspect: Aspect,
    unit: &'static str,
    threshold: f64,
    source: &'static str,
    shown_by: &'static str,
}

const fn kind(
    resource: &'static str,
    aspect: Aspect,
    unit: &'static str,
    (threshold, source): (f64, &'static str),
    shown_by: &'static str,
) -> Kind {
    Kind {
        resource,
        aspect,
        unit,
        threshold,
        source,
        shown_by,
    }
}

/// Any loss counts.
const ANY: (f64, &str) = (1.0, GREGG);

impl Kind {
    /// The row of one figure.
    fn row(&self, value: Option<f64>) -> Row {
        self.worst(value.map(|value| (String::new(), value)))
    }

    /// The row of the item with the largest figure.
    fn worst(&self, items: impl IntoIterator<Item = (String, f64)>) -> Row {
        let items = items.into_iter();
        let worst = items.max_by(|(_, one), (_, other)| one.total_cmp(other));
        let value = worst.as_ref().map(|(_, value)| *value);
        let verdict = match (value, self.aspect) {
            (None, _) => Verdict::Unknown,
            (Some(value), _) if value < self.threshold => Verdict::Ok,
            (_, Aspect::Utilisation) => Verdict::High,
            (_, Aspect::Saturation) => Verdict::Saturated,
            (_, Aspect::Errors) => Verdict::Failing,
        };
        Row {
            resource: self.resource,
            // Without anything to report, none is the worst.
            item: worst
                .filter(|(_, value)| *value > 0.0)
                .map_or_else(String::new, |(item, _)| item),
            aspect: self.aspect,
            value,
            unit: self.unit,
            threshold: self.threshold,
            source: self.source,
            shown_by: self.shown_by,
            verdict,
        }
    }
}

/// The rows of two readings that are `seconds` apart.
pub fn rows(before: &Reading, after: &Reading, seconds: f64) -> Vec<Row> {
    let pair = Pair {
        before,
        after,
        seconds: seconds.max(0.001),
    };
    let mut rows = pair.cpus();
    rows.extend(pair.memory());
    rows.extend(pair.interfaces());
    rows.extend(pair.queues());
    rows.extend(pair.sockets());
    rows.extend(pair.tables());
    rows.extend(pair.disks());
    rows.push(pair.event_loop());
    rows
}

/// Two readings.
struct Pair<'r> {
    before: &'r Reading,
    after: &'r Reading,
    seconds: f64,
}

/// How much a counter grew. A counter that was reset did not grow.
fn growth(before: u64, after: u64) -> f64 {
    after.saturating_sub(before) as f64
}

impl Pair<'_> {
    fn files(&self, name: &str) -> [&str; 2] {
        [self.before.file(name), self.after.file(name)]
    }

    /// The share of the interval in which a thread waited, in per cent.
    fn pressure(&self, name: &str) -> Option<f64> {
        let [before, after] = self.files(name).map(read::pressure_us);
        let waited = growth(before?, after?);
        Some((waited / self.seconds / 10_000.0).min(100.0))
    }

    /// The growth of the counters `names` of a file of names and numbers.
    fn grown(&self, file: &str, names: &[&str]) -> Option<f64> {
        let [before, after] = self.files(file).map(read::counters);
        let sums = names.iter().filter_map(|name| {
            let before = before.get(*name)?;
            Some(growth(*before, *after.get(*name)?))
        });
        sums.reduce(|one, other| one + other)
    }

    fn cpus(&self) -> Vec<Row> {
        const BUSY: Kind = kind(
            "cpu",
            Aspect::Utilisation,
            "% busy, all CPUs",
            (70.0, GREGG_70),
            "mpstat; /proc/stat",
        );
        const BUSIEST: Kind = kind(
            "cpu",
            Aspect::Utilisation,
            "% busy, the busiest",
            (70.0, GREGG_70),
            "mpstat -P ALL; /proc/stat",
        );
        const STEAL: Kind = kind(
            "cpu",
            Aspect::Saturation,
            "% stolen by the hypervisor",
            (10.0, OWN),
            "vmstat (st); /proc/stat",
        );
        const QUEUE: Kind = kind(
            "cpu",
            Aspect::Saturation,
            "threads ready beyond the CPUs, at both readings",
            (1.0, GREGG),
            "vmstat (r); /proc/stat",
        );
        const WAITING: Kind = kind(
            "cpu",
            Aspect::Saturation,
            "% of the time a thread waited for a CPU",
            (10.0, OWN),
            "/proc/pressure/cpu",
        );
        let [before, after] = self.files("/proc/stat").map(read::cpus);
        let mut each = Vec::new();
        for (number, after) in &after {
            let before = before.get(number).copied().unwrap_or_default();
            let total = growth(before.total, after.total);
            if total > 0.0 {
                let busy = 100.0 * growth(before.busy, after.busy) / total;
                let steal = 100.0 * growth(before.steal, after.steal) / total;
                each.push((format!("cpu{number}"), busy, steal));
            }
        }
        let count = each.len() as f64;
        let mean = |of: fn(&(String, f64, f64)) -> f64| {
            (!each.is_empty()).then(|| each.iter().map(of).sum::<f64>() / count)
        };
        // The reader of the file runs too.
        let ready = self.files("/proc/stat").map(read::ready);
        let beyond = ready.map(|ready| ready.map(|ready| (ready as f64 - 1.0 - count).max(0.0)));
        let lasting = beyond[0].zip(beyond[1]).map(|(one, other)| one.min(other));
        vec![
            BUSY.row(mean(|(_, busy, _)| *busy)),
            BUSIEST.worst(each.iter().map(|(name, busy, _)| (name.clone(), *busy))),
            QUEUE.row(lasting),
            WAITING.row(self.pressure("/proc/pressure/cpu")),
            STEAL.row(mean(|(_, _, steal)| *steal)),
        ]
    }

    fn memory(&self) -> Vec<Row> {
        const USED: Kind = kind(
            "memory",
            Aspect::Utilisation,
            "% used",
            (90.0, OWN),
            "free -m; /proc/meminfo",
        );
        const SWAP: Kind = kind(
            "memory",
            Aspect::Saturation,
            "pages swapped in or out",
            ANY,
            "vmstat (si, so); /proc/vmstat",
        );
        const WAITING: Kind = kind(
            "memory",
            Aspect::Saturation,
            "% of the time a thread waited for memory",
            (10.0, OWN),
            "/proc/pressure/memory",
        );
        const KILLED: Kind = kind(
            "memory",
            Aspect::Errors,
            "processes killed for lack of memory",
            ANY,
            "dmesg; /proc/vmstat (oom_kill)",
        );
        let info = read::numbers(self.after.file("/proc/meminfo"));
        let used = info.get("MemTotal").zip(info.get("MemAvailable"));
        let used = used.filter(|(total, _)| **total > 0);
        let used = used.map(|(total, free)| 100.0 - 100.0 * *free as f64 / *total as f64);
        let [before, after] = self.files("/proc/vmstat").map(read::numbers);
        let grown = |names: &[&str]| {
            let all = names
                .iter()
                .filter_map(|name| Some(growth(*before.get(name)?, *after.get(name)?)));
            all.reduce(|one, other| one + other)
        };
        vec![
            USED.row(used),
            SWAP.row(grown(&["pswpin", "pswpout"])),
            WAITING.row(self.pressure("/proc/pressure/memory")),
            KILLED.row(grown(&["oom_kill"])),
        ]
    }

    fn interfaces(&self) -> Vec<Row> {
        const USED: Kind = kind(
            "interface",
            Aspect::Utilisation,
            "% of its speed, one direction",
            (70.0, GREGG_70),
            "sar -n DEV; /proc/net/dev, /sys/class/net/IF/speed",
        );
        const DROPS: Kind = kind(
            "interface",
            Aspect::Saturation,
            "frames dropped by full rings and queues",
            ANY,
            "ip -s -s link; /proc/net/dev, /sys/class/net/IF/statistics/rx_missed_errors",
        );
        const BACKLOG: Kind = kind(
            "interface",
            Aspect::Saturation,
            "packets dropped by a CPU's backlog",
            ANY,
            "/proc/net/softnet_stat (2nd column)",
        );
        const ERRORS: Kind = kind(
            "interface",
            Aspect::Errors,
            "frames with errors",
            ANY,
            "ip -s link; /proc/net/dev",
        );
        let [before, after] = self.files("/proc/net/dev").map(read::interfaces);
        let both: BTreeMap<&String, [read::Interface; 2]> = after
            .iter()
            .filter_map(|(name, after)| Some((name, [*before.get(name)?, *after])))
            .collect();
        let grown = |of: fn(&read::Interface) -> [u64; 2]| {
            let all = both.iter().map(move |(name, [before, after])| {
                let sum: f64 = of(before)
                    .into_iter()
                    .zip(of(after))
                    .map(|(one, other)| growth(one, other))
                    .sum();
                ((*name).clone(), sum)
            });
            all.collect::<Vec<_>>()
        };
        let dropped = grown(|interface| interface.dropped).into_iter();
        let dropped = dropped.map(|(name, sum)| {
            let missed = [&self.before, &self.after].map(|one| one.missed.get(&name).copied());
            let missed = missed.map(Option::unwrap_or_default);
            (name, sum + growth(missed[0], missed[1]))
        });
        let used = both.iter().filter_map(|(name, [before, after])| {
            let speed = *self.after.speeds.get(*name)?;
            let bytes = before.bytes.into_iter().zip(after.bytes);
            let most = bytes
                .map(|(one, other)| growth(one, other))
                .fold(0.0, f64::max);
            (speed > 0).then(|| ((*name).clone(), 800.0 * most / self.seconds / speed as f64))
        });
        let backlog = self.files("/proc/net/softnet_stat");
        let is_there = !backlog[1].is_empty();
        let [one, other] = backlog.map(read::backlog);
        vec![
            USED.worst(used),
            DROPS.worst(dropped),
            BACKLOG.row(is_there.then(|| growth(one[0], other[0]))),
            ERRORS.worst(grown(|interface| interface.errors)),
        ]
    }

    fn queues(&self) -> Vec<Row> {
        const WAITING: Kind = kind(
            "queue",
            Aspect::Saturation,
            "packets that wait, at both readings",
            ANY,
            "tc -s qdisc show (backlog)",
        );
        const DROPS: Kind = kind(
            "queue",
            Aspect::Saturation,
            "packets that the queue dropped",
            ANY,
            "tc -s qdisc show (dropped)",
        );
        let both = self
            .before
            .queues
            .as_deref()
            .zip(self.after.queues.as_deref());
        let both = both.map(|(before, after)| (read::queues(before), read::queues(after)));
        let (before, after) = both.unwrap_or_default();
        let pairs: Vec<_> = after
            .iter()
            .filter_map(|after| {
                Some((
                    before.iter().find(|before| before.name == after.name)?,
                    after,
                ))
            })
            .collect();
        let waiting = pairs
            .iter()
            .map(|(before, after)| (after.name.clone(), before.waiting.min(after.waiting) as f64));
        let drops = pairs
            .iter()
            .map(|(before, after)| (after.name.clone(), growth(before.drops, after.drops)));
        vec![WAITING.worst(waiting), DROPS.worst(drops)]
    }

    fn sockets(&self) -> Vec<Row> {
        const BUFFERS: Kind = kind(
            "socket",
            Aspect::Saturation,
            "UDP datagrams dropped by full buffers",
            ANY,
            "nstat -az UdpRcvbufErrors UdpSndbufErrors; /proc/net/snmp",
        );
        const NOW: Kind = kind(
            "socket",
            Aspect::Saturation,
            "UDP datagrams dropped by open sockets",
            ANY,
            "ss -uanm (d); /proc/net/udp (drops)",
        );
        const LISTEN: Kind = kind(
            "socket",
            Aspect::Saturation,
            "TCP connections that a full listen queue refused",
            ANY,
            "nstat -az TcpExtListenOverflows; /proc/net/netstat",
        );
        const ERRORS: Kind = kind(
            "socket",
            Aspect::Errors,
            "segments and datagrams with errors",
            ANY,
            "nstat -az TcpInErrs UdpInCsumErrors; /proc/net/snmp",
        );
        let sockets = ["/proc/net/udp", "/proc/net/udp6"].map(|name| self.files(name));
        let is_there = sockets.iter().any(|[_, after]| !after.is_empty());
        let drops = sockets.map(|files| {
            let [before, after] = files.map(|text| read::sockets(text).drops);
            growth(before, after)
        });
        vec![
            BUFFERS.row(self.grown("/proc/net/snmp", &["Udp.RcvbufErrors", "Udp.SndbufErrors"])),
            NOW.row(is_there.then(|| drops.iter().sum())),
            LISTEN.row(self.grown("/proc/net/netstat", &["TcpExt.ListenOverflows"])),
            ERRORS.row(self.grown("/proc/net/snmp", &["Tcp.InErrs", "Udp.InCsumErrors"])),
        ]
    }

    /// Open files, and connections that are tracked.
    fn tables(&self) -> Vec<Row> {
        const FILES: Kind = kind(
            "descriptors",
            Aspect::Utilisation,
            "% of all open files",
            (80.0, FULL),
            "/proc/sys/fs/file-nr",
        );
        const OWN_FILES: Kind = kind(
            "descriptors",
            Aspect::Utilisation,
            "% of the process's own limit",
            (80.0, FULL),
            "ls /proc/PID/fd | wc -l; /proc/PID/limits",
        );
        const TRACKED: Kind = kind(
            "conntrack",
            Aspect::Utilisation,
            "% of the table",
            (80.0, FULL),
            "conntrack -C; /proc/sys/net/netfilter/nf_conntrack_count",
        );
        const REFUSED: Kind = kind(
            "conntrack",
            Aspect::Saturation,
            "new connections refused, or others evicted for them",
            ANY,
            "conntrack -S; /proc/net/stat/nf_conntrack",
        );
        let files = read::files(self.after.file("/proc/sys/fs/file-nr"));
        let share =
            |[part, whole]: [u64; 2]| (whole > 0).then(|| 100.0 * part as f64 / whole as f64);
        let processes = self.after.processes.iter();
        let own =
            processes.filter_map(|one| Some((one.name.clone(), share([one.open, one.limit])?)));
        let number = |name: &str| self.after.file(name).trim().parse::<u64>().ok();
        let tracked = number("/proc/sys/net/netfilter/nf_conntrack_count")
            .zip(number("/proc/sys/net/netfilter/nf_conntrack_max"));
        let [before, after] = self
            .files("/proc/net/stat/nf_conntrack")
            .map(read::conntrack_drops);
        vec![
            FILES.row(files.and_then(share)),
            OWN_FILES.worst(own),
            TRACKED.row(tracked.and_then(|(count, most)| share([count, most]))),
            REFUSED.row(
                before
                    .zip(after)
                    .map(|(before, after)| growth(before, after)),
            ),
        ]
    }

    /// The first thread of the daemon, which handles one event after the other.
    fn event_loop(&self) -> Row {
        const BUSY: Kind = kind(
            "daemon loop",
            Aspect::Utilisation,
            "% of the time busy",
            (70.0, GREGG_70),
            "headend show event poll",
        );
        let both = self.before.loop_busy_s.zip(self.after.loop_busy_s);
        BUSY.row(both.map(|(before, after)| (100.0 * (after - before) / self.seconds).max(0.0)))
    }

    fn disks(&self) -> Vec<Row> {
        const BUSY: Kind = kind(
            "disk",
            Aspect::Utilisation,
            "% of the time busy",
            (70.0, GREGG_70),
            "iostat -x (%util); /proc/diskstats",
        );
        const QUEUE: Kind = kind(
            "disk",
            Aspect::Saturation,
            "requests under way or waiting, on average",
            (2.0, GREGG),
            "iostat -x (aqu-sz); /proc/diskstats",
        );
        const WAITING: Kind = kind(
            "disk",
            Aspect::Saturation,
            "% of the time a thread waited for a disk",
            (10.0, OWN),
            "/proc/pressure/io",
        );
        let [before, after] = self.files("/proc/diskstats").map(read::disks);
        let ms = self.seconds * 1_000.0;
        let grown = |of: fn(&read::Disk) -> u64, scale: f64| {
            let all = after.iter().filter_map(|(name, after)| {
                Some((
                    name.clone(),
                    scale * growth(of(before.get(name)?), of(after)) / ms,
                ))
            });
            all.collect::<Vec<_>>()
        };
        vec![
            BUSY.worst(
                grown(|disk| disk.busy_ms, 100.0)
                    .into_iter()
                    .map(|(name, value)| (name, value.min(100.0))),
            ),
            QUEUE.worst(grown(|disk| disk.waited_ms, 1.0)),
            WAITING.row(self.pressure("/proc/pressure/io")),
        ]
    }
}
