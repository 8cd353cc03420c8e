//! The texts of `-h` and its topics.

use std::fmt::Write;

use clap::{Arg, ArgAction};

use super::filter::VARIABLES;
use super::flags::{Act, FLAGS, Flag, Group};
use super::low::Help;

/// The text for a topic.
pub(super) fn text(topic: Help) -> String {
    match topic {
        Help::Arguments => arguments(),
        Help::Filter => filter(),
        Help::Output => OUTPUT.to_owned(),
        Help::Hints => HINTS.to_owned(),
        Help::Formats => FORMATS.to_owned(),
        Help::Version => concat!("headend trace ", env!("CARGO_PKG_VERSION"), "\n").to_owned(),
    }
}

pub(super) const WHY: &str = "\
What the senders of each connection waited for

Usage: headend trace why [FLAG...] FILE...
       headend trace why [FLAG...] --live INTERFACE

Prints one sentence about the connection that waited longest, the ten slowest
connections, and the pairs of hosts. The time of each direction is divided into
causes without remainder; docs/why.md has their rules.

  -oN, -iN        only these connections, or all but these
  -BN, -EN        only packets from number N on, or up to it
  -u              also UDP flows: handshakes of QUIC, losses of RTP, ESP and
                  WireGuard, answers of DNS; on one thread
  --json          one JSON object per connection, the summary last
  -S, -R, -T, -N, -F
                  also draws graphs, with the causes as a strip at the foot:
                  a page for each connection, or pictures with --svg
  --part, --merge, --memory, --threads, --realm, --checksum
                  as for headend trace

  --live IFACE    captures at an interface (or any) and prints the ten slowest
                  connections at intervals, with their processes where that is
                  permitted, and the report at the end
  --every TIME    the interval (5s)
  --duration TIME, --snaplen N, --promiscuous, --ring SIZE, --write FILE
                  as for headend trace

Exit status: 0 success; 1 a file is faulty, and the report covers the rest; 2 wrong usage.
";

pub(super) const TWIN: &str = "\
The bottleneck of a congested path, and its flows again under another queue

Usage: headend trace twin [FLAG...] FILE...

Infers rate, round trip, buffer, losses and cross traffic of each congested
direction, and runs its TCP flows again in virtual time: first as they were, then
under a policy. docs/twin.md explains the method and its errors.

  --policy NAME|FILE  the queue: fq_codel (default), fair, codel, sfq, fifo, or a
                      policy file of headend qos
  --page FILE         also write a page with round trips and rates over time
  --seed N            the source of chance (default 1); same seed, same result
  --json              one JSON object
  -oN, -iN            only these connections, or all but these
  -BN, -EN            only packets from number N on, or up to it
  --memory, --realm, --checksum
                      as for headend trace

Exit status: 0 success; 1 no direction was congested, or a file is faulty; 2 wrong
usage, or a policy that cannot be.
";

const USAGE: &str = "\
TCP connections in captures, with the statistics and graphs of tcptrace

Usage: headend trace [FLAG...] FILE...
       headend trace [FLAG...] --live INTERFACE
       headend trace why [FLAG...] FILE...
       headend trace twin [FLAG...] FILE...
       headend trace diff [FLAG...] A B

Files are pcap, pcapng, snoop, ERF, TSH or EtherPeek, plain or compressed with
gzip, zstd, bzip2, xz or lz4. Several files are read in the order of their first
time stamps, as one capture. - (or stdin) is standard input.

Flags have tcptrace's syntax. Letters can be combined (-lnrW). + reverses a
switch (+t). A value follows its letter directly or as the next word. Long names
can be abbreviated if that is unambiguous, and the prefix no reverses a long
switch (--noshowsacks). TCPTRACEOPTS and .tcptracerc are not read.
Topics: -hfilter, -houtput, -hhints, -hconfig.
";

fn arguments() -> String {
    let mut out = USAGE.to_owned();
    for group in Group::ALL {
        let _ = writeln!(out, "\n{}:", group.title());
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            let name = name(flag);
            let gap = if name.len() < 26 { 26 - name.len() } else { 1 };
            let lines = wrap(flag.help, 50);
            let _ = write!(out, "  {name}{:gap$}", "");
            let _ = writeln!(out, "{}", lines.join(&format!("\n{:28}", "")));
        }
    }
    out.push_str("\nExit status: 0 success; 1 a file is faulty, and the report covers the rest; 2 wrong usage.\n");
    out
}

/// The flags as clap describes them, for manual pages and completions. clap does not parse them.
pub(super) fn described() -> Vec<Arg> {
    let described = FLAGS.iter().map(|flag| {
        let id = format!("{}{}", flag.letter, flag.long);
        let mut arg = Arg::new(id)
            .help(flag.help)
            .help_heading(flag.group.title());
        if flag.letter != '\0' {
            arg = arg.short(flag.letter);
        }
        if !flag.long.is_empty() {
            arg = arg.long(long(flag));
        }
        match flag.act {
            Act::Switch(_) | Act::Ignored => arg.action(ArgAction::SetTrue),
            Act::Value(what, _) | Act::IgnoredValue(what) => {
                arg.value_name(what.trim_start_matches("a ").to_uppercase())
            }
            Act::Suffix(what, _) | Act::Joined(what, _) => {
                arg.value_name(what.to_owned()).num_args(0..=1)
            }
        }
    });
    described.collect()
}

/// The long name as users write it. Names that tcptrace has keep their underscores.
fn long(flag: &Flag) -> String {
    if flag.theirs {
        flag.long.to_owned()
    } else {
        flag.long.replace('_', "-")
    }
}

fn name(flag: &Flag) -> String {
    let long = long(flag);
    let value = match flag.act {
        Act::Switch(_) | Act::Ignored => String::new(),
        Act::Value(what, _) | Act::IgnoredValue(what) => {
            let what = what.trim_start_matches("a ");
            if flag.letter == '\0' {
                format!("={}", what.to_uppercase())
            } else {
                what.to_uppercase()
            }
        }
        Act::Suffix(what, _) | Act::Joined(what, _) => what.to_owned(),
    };
    match (flag.letter, long.as_str()) {
        ('\0', long) => format!("    --{long}{value}"),
        (letter, "") => format!("-{letter}{value}"),
        (letter, long) => format!("-{letter}{value}, --{long}"),
    }
}

/// Breaks a text into lines.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let fits = lines
            .last()
            .is_some_and(|line| line.is_empty() || line.len() + 1 + word.len() <= width);
        if !fits {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn filter() -> String {
    let mut out = FILTER.to_owned();
    for variable in VARIABLES {
        let _ = writeln!(
            out,
            "  {:18} {:10} {}",
            variable.name,
            variable
                .kind
                .name()
                .trim_start_matches("a ")
                .trim_start_matches("an "),
            variable.help
        );
    }
    out
}

const FILTER: &str = "\
A filter, -fEXPR, selects connections by their final statistics:

  headend trace '-fsegs>10' FILE
  headend trace '-fc_segs>10 OR s_segs>20' FILE
  headend trace '-fb_rexmit_bytes>0 AND thruput<10000' FILE
  headend trace '-fhostaddr=192.0.2.1' FILE

The prefix c_ selects the client, which sent the first packet, s_ the server,
b_ both, and e_ or no prefix either of them.
Numbers: + - * / % & |  and constants such as 10 or -10.
Comparisons: < > <= >= = == != of numbers, of \"texts\", of addresses.
Truth: AND && -a, OR || -o, NOT ! ~, TRUE, FALSE.
Precedence is tcptrace's, from loosest to tightest: NOT, AND, OR, comparisons,
& and |, + and -, * / %. Use parentheses.
The numbers of the selected connections are written to the file PF, for -oPF.

Variables:
";

const OUTPUT: &str = "\
Every value of the reports has the meaning in tcptrace's manual. docs/trace.md
lists the values, and docs/trace-differences.md explains where they differ from
tcptrace's.

a2b is the data from the end that sent the first packet, b2a the data from the
other end. Connections are numbered in the order of their first packets.
";

const HINTS: &str = "\
headend trace FILE             list the connections
headend trace -l FILE          all statistics of each connection
headend trace -o3 -S FILE      the time-sequence graph of connection 3
headend trace --html -o3 FILE  the same for a browser
tcpdump -w - | headend trace - a live capture
Select connections with a filter first, then draw them: -f'EXPR', then -oPF.
A snap length of 142 bytes holds all headers and options over Ethernet.
";

const FORMATS: &str = "\
Formats, detected by content: pcap (us, ns, either byte order), pcapng, snoop,
ERF, TSH, EtherPeek 5 to 7; plain or compressed with gzip, zstd, bzip2, xz, lz4.
Link layers: Ethernet, 802.3 LLC and SNAP, VLAN, QinQ, Linux SLL and SLL2, BSD
null and loop, raw IP, FDDI, ATM (RFC 1483), PPP, PPPoE, Cisco HDLC, MPLS.
Tunnels: GRE, IP in IP, 6in4, 4in6, VXLAN, Geneve, L2TPv2 and v3, PPTP, GTP-U,
EtherIP, MPLS in IP and UDP.
Modules of tcptrace (-x): none.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_flag_and_fits_a_terminal() {
        let help = arguments();
        for flag in FLAGS {
            assert!(help.contains(&name(flag)), "{}", name(flag));
        }
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        let filter = filter();
        assert!(
            VARIABLES
                .iter()
                .all(|variable| filter.contains(variable.name))
        );
    }
}
