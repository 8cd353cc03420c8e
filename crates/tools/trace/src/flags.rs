//! Every flag of `headend trace`, in one table: its syntax, its effect and its text in `--help`.
//!
//! Flags have tcptrace's syntax: letters can be combined, `+` reverses a switch, values are attached, the prefix `no`
//! reverses a long switch, and a long name can be abbreviated to any unambiguous prefix.

use super::low::{Graphs, LowArgs, Usage};
use super::values;

/// The heading under which `--help` lists a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Report,
    Graph,
    Detail,
    Which,
    Files,
    Names,
    Reading,
    Live,
    Parts,
    Warn,
    Idle,
}

impl Group {
    pub(super) const ALL: [Group; 11] = [
        Group::Report,
        Group::Graph,
        Group::Detail,
        Group::Which,
        Group::Files,
        Group::Names,
        Group::Reading,
        Group::Live,
        Group::Parts,
        Group::Warn,
        Group::Idle,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Group::Report => "Report",
            Group::Graph => "Graphs, one .xpl file each unless --svg or --html",
            Group::Detail => "Details of graphs",
            Group::Which => "Which connections and packets",
            Group::Files => "Packets and output files",
            Group::Names => "Names",
            Group::Reading => "Reading and progress",
            Group::Live => "Capturing an interface",
            Group::Parts => "Limits, threads and parts",
            Group::Warn => "Warnings",
            Group::Idle => "Accepted for compatibility with tcptrace, without effect",
        }
    }
}

type Set = fn(&mut LowArgs, &str) -> Result<(), String>;

/// The value and effect of a flag.
#[derive(Clone, Copy)]
pub(super) enum Act {
    /// On or off.
    Switch(fn(&mut LowArgs, bool)),
    /// A value, attached, after `=`, or the next word; its name in `--help`.
    Value(&'static str, Set),
    /// An optional attached value.
    Suffix(
        &'static str,
        fn(&mut LowArgs, &str, bool) -> Result<(), String>,
    ),
    /// A value attached to the long name: `--oTCP3-5`.
    Joined(&'static str, Set),
    /// No effect.
    Ignored,
    /// A value, without effect.
    IgnoredValue(&'static str),
}

/// A flag.
#[derive(Clone, Copy)]
pub(super) struct Flag {
    /// NUL if it has none.
    pub(super) letter: char,
    /// Empty if it has none.
    pub(super) long: &'static str,
    pub(super) group: Group,
    /// tcptrace has it, too.
    pub(super) theirs: bool,
    pub(super) act: Act,
    pub(super) help: &'static str,
}

const NONE: char = '\0';

const fn theirs(
    letter: char,
    long: &'static str,
    group: Group,
    act: Act,
    help: &'static str,
) -> Flag {
    let theirs = true;
    Flag {
        letter,
        long,
        group,
        theirs,
        act,
        help,
    }
}

const fn ours(long: &'static str, group: Group, act: Act, help: &'static str) -> Flag {
    let (letter, theirs) = (NONE, false);
    Flag {
        letter,
        long,
        group,
        theirs,
        act,
        help,
    }
}

use Act::{Ignored, IgnoredValue, Joined, Suffix, Switch, Value};
use Group::{Detail, Files, Graph, Idle, Live, Names, Parts, Reading, Report, Warn, Which};

/// All flags, in the order of `--help`.
#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    theirs('b', "", Report, Switch(|args, on| args.brief = on),
        "one line for each connection (default)"),
    theirs('l', "", Report, Switch(|args, on| args.brief = !on),
        "all statistics of each connection"),
    theirs('r', "", Report, Switch(|args, on| args.rtt = on),
        "with -l: round-trip times, duplicate ACKs, retransmission times"),
    theirs('W', "", Report, Switch(|args, on| args.owin = on),
        "with -l: data in flight"),
    theirs('q', "", Report, Switch(|args, on| args.quiet = on),
        "do not list the connections"),
    theirs('u', "", Report, Switch(|args, on| args.udp = on),
        "report UDP flows, too, after the connections"),
    theirs(NONE, "csv", Report, Switch(|args, on| args.csv = on),
        "with -l: comma-separated values, one line for each connection"),
    theirs(NONE, "tsv", Report, Switch(|args, on| args.tsv = on),
        "with -l: tab-separated values"),
    theirs(NONE, "sv", Report, Value("a separator", |args, text| { args.separator = Some(text.into()); Ok(()) }),
        "with -l: values separated by this"),
    ours("json", Report, Switch(|args, on| args.json = on),
        "one JSON object on each line: the connections, then a summary"),
    ours("parquet", Report, Value("a file", |args, text| { args.parquet = Some(text.into()); Ok(()) }),
        "also write the connections to a Parquet file"),
    ours("columns", Report, Value("names", |args, text| { args.columns = Some(text.into()); Ok(()) }),
        "only these columns, with --json, --parquet, --csv, --tsv or --sv: names of docs/trace-columns.md"),
    ours("details", Report, Switch(|args, on| args.details = on),
        "with --json, --parquet or --columns: TLS names, ECN, TTL, time stamps, SACK, shares of time, losses"),
    ours("intervals", Report, Value("a time", |args, text| { args.intervals = Some(values::time(text)?); Ok(()) }),
        "with --json or --parquet: also columns over time, in intervals of this width: 100ms, 1s"),

    theirs('S', "", Graph, Switch(|args, on| args.graphs.time_sequence = on),
        "sequence numbers over time (_tsg.xpl)"),
    theirs('T', "", Graph, Switch(|args, on| args.graphs.throughput = on),
        "throughput (_tput.xpl)"),
    theirs('R', "", Graph, Switch(|args, on| args.graphs.rtt = on),
        "round-trip times (_rtt.xpl)"),
    theirs('N', "", Graph, Switch(|args, on| args.graphs.in_flight = on),
        "data in flight (_owin.xpl)"),
    theirs('F', "", Graph, Switch(|args, on| args.graphs.segment_size = on),
        "segment sizes (_ssize.xpl)"),
    theirs('L', "", Graph, Switch(|args, on| args.graphs.time_line = on),
        "time line of both ends (_tline.xpl)"),
    theirs('G', "", Graph, Switch(|args, on| args.graphs = Graphs::all(on)),
        "all these graphs"),
    ours("svg", Graph, Switch(|args, on| args.svg = on),
        "write graphs as .svg; without other flags, the graphs of -S"),
    ours("html", Graph, Switch(|args, on| args.html = on),
        "write graphs as stand-alone .html with zoom; without other flags, the graphs of -S"),

    theirs('A', "", Detail, Value("a number", |args, text| { args.average = values::positive(text)?; Ok(()) }),
        "average throughput over this number of segments (10)"),
    theirs('C', "", Detail, Switch(|args, on| args.colour = on),
        "draw in colour (default)"),
    theirs('M', "", Detail, Switch(|args, on| args.colour = !on),
        "draw in black and white"),
    theirs('y', "", Detail, Switch(|args, on| args.instantaneous = !on),
        "no points of instantaneous throughput"),
    theirs('z', "", Detail, Suffix("[x|y|xy]", LowArgs::zero_axes),
        "count time from 0 (-z, -zx), sequence numbers (-zy), or both (-zxy)"),
    theirs(NONE, "showsacks", Detail, Switch(|args, on| args.show.sacks = on),
        "draw SACK blocks (default)"),
    theirs(NONE, "showrexmit", Detail, Switch(|args, on| args.show.retransmissions = on),
        "mark retransmissions (default)"),
    theirs(NONE, "showoutorder", Detail, Switch(|args, on| args.show.out_of_order = on),
        "mark packets out of order (default)"),
    theirs(NONE, "showzerowindow", Detail, Switch(|args, on| args.show.zero_window = on),
        "mark zero windows (default)"),
    theirs(NONE, "showurg", Detail, Switch(|args, on| args.show.urgent = on),
        "mark urgent data (default)"),
    theirs(NONE, "showrttdongles", Detail, Switch(|args, on| args.show.rtt_dongles = on),
        "mark ACKs that give no round-trip time"),
    theirs(NONE, "showdupack3", Detail, Switch(|args, on| args.show.triple_duplicates = on),
        "mark the third duplicate ACK (default)"),
    theirs(NONE, "showzerolensegs", Detail, Switch(|args, on| args.show.empty_segments = on),
        "draw packets without data (default)"),
    theirs(NONE, "showzwndprobes", Detail, Switch(|args, on| args.show.probes = on),
        "draw zero-window probes (default)"),
    theirs(NONE, "showtitle", Detail, Switch(|args, on| args.show.title = on),
        "draw a title (default)"),
    theirs(NONE, "showrwinline", Detail, Switch(|args, on| args.show.window_line = on),
        "draw the receive window in graphs of data in flight (default)"),
    theirs(NONE, "xplot_title_prefix", Detail, Value("a text", |args, text| { args.title_prefix = Some(text.into()); Ok(()) }),
        "prefix of titles"),

    theirs('o', "", Which, Value("numbers", |args, text| { args.only.add(LowArgs::numbers(text)?); Ok(()) }),
        "only these connections: -o3, -o3-5,8, or -oFILE with such a list"),
    theirs('i', "", Which, Value("numbers", LowArgs::ignored_or_interface),
        "all but these connections; with the name of an interface, as --live"),
    theirs(NONE, "oTCP", Which, Joined("N[-M]", |args, text| { args.only.add(LowArgs::numbers(text)?); Ok(()) }),
        "as -o"),
    theirs(NONE, "iTCP", Which, Joined("N[-M]", |args, text| { args.ignored.add(LowArgs::numbers(text)?); Ok(()) }),
        "as -i"),
    theirs(NONE, "oUDP", Which, Joined("N[-M]", |args, text| { args.only_udp.add(LowArgs::numbers(text)?); Ok(()) }),
        "only these UDP flows"),
    theirs(NONE, "iUDP", Which, Joined("N[-M]", |args, text| { args.ignored_udp.add(LowArgs::numbers(text)?); Ok(()) }),
        "all but these UDP flows"),
    theirs('c', "", Which, Switch(|args, on| args.complete = on),
        "only connections with both SYNs and both FINs; writes their numbers to the file PF"),
    theirs('f', "", Which, Value("a filter", |args, text| { args.filter = Some(text.into()); Ok(()) }),
        "only connections that pass a filter (see -hfilter); writes their numbers to the file PF"),
    theirs('B', "", Which, Value("a number", |args, text| { args.first = values::count(text)?; Ok(()) }),
        "start at this packet of the input (1)"),
    theirs('E', "", Which, Value("a number", |args, text| { args.last = values::count(text)?; Ok(()) }),
        "stop after this packet of the input (the last)"),

    theirs('p', "", Files, Switch(|args, on| args.print_all = on),
        "print all packets"),
    theirs('P', "", Files, Switch(|args, on| args.print = on),
        "print the packets of the chosen connections"),
    theirs(NONE, "dump_packet_data", Files, Switch(|args, on| args.print_data = on),
        "print all packets and their data"),
    theirs(NONE, "print_seq_zero", Files, Switch(|args, on| args.relative = on),
        "print sequence numbers relative to the initial one"),
    theirs('D', "", Files, Switch(|args, on| args.hex = !on),
        "print numbers of packets in decimal"),
    theirs('X', "", Files, Switch(|args, on| args.hex = on),
        "print numbers of packets in hexadecimal (default)"),
    theirs('Z', "", Files, Switch(|args, on| args.rtt_dump = on),
        "write round-trip times to files (a2b_rttraw.dat)"),
    theirs('e', "", Files, Switch(|args, on| args.contents = on),
        "write the data of each direction to a file (a2b_contents.dat)"),
    theirs('O', "", Files, Value("a file", |args, text| { args.save = Some(text.into()); Ok(()) }),
        "write the packets of the chosen connections to a pcap file"),
    theirs(NONE, "output_dir", Files, Value("a directory", |args, text| { args.output_dir = Some(text.into()); Ok(()) }),
        "directory of output files, except those given by name"),
    theirs(NONE, "output_prefix", Files, Value("a text", |args, text| { args.output_prefix = Some(text.into()); Ok(()) }),
        "prefix of the names of output files"),

    theirs('n', "", Names, Switch(|args, on| { args.host_names = !on; args.port_names = !on; }),
        "print addresses and ports as numbers (default, unlike tcptrace)"),
    ours("names", Names, Switch(|args, on| { args.host_names = on; args.port_names = on; }),
        "look up the names of hosts and ports"),
    theirs(NONE, "res_addr", Names, Switch(|args, on| args.host_names = on),
        "look up the names of hosts"),
    theirs(NONE, "res_port", Names, Switch(|args, on| args.port_names = on),
        "look up the names of ports"),
    theirs('s', "", Names, Switch(|args, on| args.short_names = on),
        "print names of hosts up to the first dot"),

    theirs('t', "", Reading, Switch(|args, on| args.progress = on),
        "show progress on standard error if that is a terminal (default; +t for none)"),
    theirs('d', "", Reading, Switch(|args, on| args.debug = if on { args.debug + 1 } else { 0 }),
        "print the format of each file"),
    ours("closings", Reading, Switch(|args, on| args.closings = Some(on)),
        "print a line on standard error for each connection that closes (default for a pipe and --live)"),
    theirs(NONE, "continuous", Reading, Switch(|args, on| args.continuous = on),
        "print each connection when it finishes, and no summary"),
    theirs(NONE, "update_interval", Reading, Value("seconds", |args, text| { args.interval = f64::from(values::positive(text)?); Ok(()) }),
        "interval of the counts of a live capture (30)"),
    theirs(NONE, "checksum", Reading, Switch(|args, on| args.checksum = on),
        "verify IP, TCP and UDP checksums, and skip packets with a wrong one. A checksum that a network card was to fill in counts as right"),
    ours("resync", Reading, Switch(|args, on| args.resync = on),
        "after a fault in pcap or pcapng, find the next record (default; --no-resync to stop there)"),
    theirs('v', "version", Reading, Switch(|args, on| if on { args.help = Some(super::low::Help::Version) }),
        "print the version"),
    theirs('h', "help", Reading, Suffix("[TOPIC]", |args, topic, _| { args.help_topic(topic); Ok(()) }),
        "print help: -hargs, -hfilter, -houtput, -hhints, -hconfig"),

    ours("live", Live, Value("an interface", |args, text| { args.live = Some(text.into()); Ok(()) }),
        "capture at this interface, or at any, until Ctrl-C, and then print the report"),
    ours("duration", Live, Value("a time", |args, text| { args.duration = Some(values::time(text)?); Ok(()) }),
        "end after this time: 10s, 5m"),
    ours("every", Live, Value("a time", |args, text| { args.every = Some(values::time(text)?); Ok(()) }),
        "with why: report the slowest connections at this interval (5s)"),
    ours("snaplen", Live, Value("a number", |args, text| { args.snap = Some(values::positive(text)?); Ok(()) }),
        "capture this number of bytes of each frame (all)"),
    ours("promiscuous", Live, Switch(|args, on| args.promiscuous = on),
        "also capture frames to other hosts"),
    ours("ring", Live, Value("a size", |args, text| { args.ring = Some(values::size(text)?); Ok(()) }),
        "memory for frames that are not analysed yet: 8M, 256M (32M)"),
    ours("write", Live, Value("a file", |args, text| { args.write = Some(text.into()); Ok(()) }),
        "also write the frames to a pcap file"),

    ours("threads", Parts, Value("a number", |args, text| { args.threads = Some(values::positive(text)? as usize); Ok(()) }),
        "number of threads (one for each processor, 16 at most)"),
    ours("memory", Parts, Value("a size", |args, text| { args.memory = values::size(text)?; Ok(()) }),
        "memory for connections: 512M, 2G (2G)"),
    ours("idle", Parts, Value("a time", |args, text| { args.idle = values::time(text)?; Ok(()) }),
        "a connection finishes when idle for longer: 90s, 20m, 2h (2h)"),
    ours("idle_closed", Parts, Value("a time", |args, text| { args.idle_closed = values::time(text)?; Ok(()) }),
        "the same for a closed connection (30m)"),
    theirs(NONE, "endpoint_reuse_interval", Parts, Value("seconds", |args, text| { args.idle = values::time(text)?; Ok(()) }),
        "as --idle (tcptrace's default is 240)"),
    theirs(NONE, "remove_live_conn_interval", Parts, Value("seconds", |args, text| { args.idle = values::time(text)?; Ok(()) }),
        "as --idle"),
    theirs(NONE, "remove_closed_conn_interval", Parts, Value("seconds", |args, text| { args.idle_closed = values::time(text)?; Ok(()) }),
        "as --idle-closed"),
    ours("realm", Parts, Switch(|args, on| args.realm = on),
        "keep the same addresses in different tunnels and VLANs apart"),
    ours("part", Parts, Value("K/N", |args, text| { args.part = Some(values::part(text)?); Ok(()) }),
        "write part K, from 0, of N, for --merge"),
    ours("part_file", Parts, Value("a file", |args, text| { args.part_file = Some(text.into()); Ok(()) }),
        "file that --part writes (standard output)"),
    ours("merge", Parts, Switch(|args, on| args.merge = on),
        "the files are parts: report them as one run"),

    theirs('w', "", Warn, Switch(LowArgs::warn_all),
        "all of the following, and counts of packets by kind"),
    theirs(NONE, "warn_ooo", Warn, Switch(|args, on| args.warn.time = on),
        "packets whose time is before the previous packet's"),
    theirs(NONE, "warn_printtrunc", Warn, Switch(|args, on| args.warn.truncated = on),
        "packets too short to analyse"),
    theirs(NONE, "warn_printbadmbz", Warn, Switch(|args, on| args.warn.reserved = on),
        "TCP headers whose reserved bits are not zero"),
    theirs(NONE, "warn_printhwdups", Warn, Switch(|args, on| args.warn.duplicates = on),
        "hardware duplicates"),
    theirs(NONE, "warn_printbadcsum", Warn, Switch(|args, on| args.warn.checksums = on),
        "with --checksum: packets with a wrong checksum"),
    theirs(NONE, "warn_printbad_syn_fin_seq", Warn, Switch(|args, on| args.warn.sequences = on),
        "SYNs and FINs repeated with another sequence number"),

    theirs(NONE, "graphrecvwin", Idle, Ignored,
        "tcptrace 6.6.7 does not draw a graph of the receive window, either"),
    theirs(NONE, "dupack3_data", Idle, Ignored,
        "ACKs with data are not duplicates (RFC 5681)"),
    theirs(NONE, "check_hwdups", Idle, Ignored,
        "hardware duplicates are always detected"),
    theirs(NONE, "turn_off_BSD_dupack", Idle, Ignored,
        "duplicate ACKs are as in RFC 5681"),
    theirs(NONE, "ns_hdrs", Idle, Ignored,
        "files of the ns simulator are not read"),
    theirs(NONE, "limit_conn_num", Idle, Ignored,
        "see --memory"),
    theirs(NONE, "max_conn_num", Idle, IgnoredValue("a number"),
        "see --memory"),
    theirs(NONE, "xplot_all_files", Idle, Ignored,
        "xplot is not started"),
    theirs(NONE, "xplot_args", Idle, IgnoredValue("arguments"),
        "xplot is not started"),
];

/// The flag with that letter.
pub(super) fn by_letter(letter: char) -> Option<&'static Flag> {
    FLAGS
        .iter()
        .find(|flag| flag.letter == letter && letter != NONE)
}

/// The flag that takes its value attached to its long name, and the value.
pub(super) fn joined(word: &str) -> Option<(&'static Flag, &str)> {
    FLAGS.iter().find_map(|flag| {
        let head = word.get(..flag.long.len())?;
        let fits = matches!(flag.act, Act::Joined(..)) && head.eq_ignore_ascii_case(flag.long);
        fits.then(|| (flag, &word[flag.long.len()..]))
    })
}

/// A flag by its long name.
pub(super) struct Found {
    pub(super) flag: &'static Flag,
    /// False with `no` in front.
    pub(super) on: bool,
}

/// The flag that `name` means: a full name, or an unambiguous prefix. tcptrace's flags take precedence, so that a
/// prefix that is unambiguous in tcptrace is so here.
///
/// # Errors
/// No flag is called that, or several are.
pub(super) fn by_name(name: &str, has_value: bool) -> Result<Found, Usage> {
    let name = name.replace('-', "_");
    let plain = |flag: &&Flag| !flag.long.is_empty() && !matches!(flag.act, Act::Joined(..));
    let negative = name.strip_prefix("no");
    let negative = negative.map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    for (name, on) in [(Some(name.as_str()), true), (negative, false)] {
        let named = |flag: &&Flag| plain(flag) && name == Some(flag.long);
        if let Some(flag) = FLAGS.iter().find(named)
            && (on || reverses(flag))
        {
            return Ok(Found { flag, on });
        }
    }
    // As in tcptrace, a name with a value is searched among the flags with a value, any other among the switches.
    let takes = |flag: &&Flag| matches!(flag.act, Act::Value(..) | Act::IgnoredValue(_));
    for theirs in [true, false] {
        for (name, on) in [(negative, false), (Some(name.as_str()), true)] {
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                continue;
            };
            let fits: Vec<&'static Flag> = FLAGS
                .iter()
                .filter(plain)
                .filter(|flag| flag.long.starts_with(name))
                .filter(|flag| {
                    if theirs {
                        flag.theirs && takes(flag) == has_value
                    } else {
                        true
                    }
                })
                .filter(|flag| on || reverses(flag))
                .collect();
            match fits[..] {
                [] => {}
                [flag] => return Ok(Found { flag, on }),
                _ => return Err(ambiguous(name, on, &fits)),
            }
        }
    }
    Err(Usage(format!("--{name} is not a flag (see --help)")))
}

/// Whether the prefix `no` can reverse it.
fn reverses(flag: &Flag) -> bool {
    matches!(flag.act, Act::Switch(_) | Act::Ignored)
}

fn ambiguous(name: &str, on: bool, fits: &[&Flag]) -> Usage {
    let no = if on { "" } else { "no" };
    let list: Vec<String> = fits
        .iter()
        .map(|flag| format!("--{no}{}", flag.long))
        .collect();
    Usage(format!("--{no}{name} may mean {}", list.join(", ")))
}
