//! Which crate may depend on which. A dependency that is missing from the table is reported.

use crate::cargo::Member;

/// A crate's row: the crates it may use, those its tests may use in addition, and why no others.
struct Row {
    krate: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
    why: &'static str,
}

const fn row(
    krate: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
    why: &'static str,
) -> Row {
    Row {
        krate,
        uses,
        tests_use,
        why,
    }
}

/// The dependencies listed in ARCHITECTURE.md. A new crate needs a row here before it builds in `cargo xtask
/// test`.
const ALLOWED: &[Row] = &[
    row(
        "base",
        &[],
        &[],
        "time, units and the Machine trait are under everything, so they know nothing",
    ),
    row(
        "wire",
        &[],
        &[],
        "bytes and headers have no state, no protocol and no I/O",
    ),
    row(
        "capfile",
        &["wire"],
        &[],
        "files of packets are bytes too; what is in them is for others",
    ),
    row(
        "trace",
        &["wire", "capfile", "plot"],
        &[],
        "captures in, connections and text out: it opens files and starts threads, but needs no socket and no protocol",
    ),
    row(
        "twin",
        &["base", "wire", "qos", "sim"],
        &[],
        "a model of a path and its flows: packets come as plain numbers, chance from a seed, queues from qos",
    ),
    row(
        "paths",
        &["wire"],
        &[],
        "packets of two points in, pairs and findings out; who reads the captures is for others",
    ),
    row(
        "page",
        &["trace", "wire"],
        &[],
        "a page shows what the analyser found; JavaScript reads the files",
    ),
    row(
        "l2tp",
        &["base", "wire"],
        &["sim"],
        "a protocol does no I/O and knows no other; simulation is for its tests",
    ),
    row(
        "ppp",
        &["base", "wire"],
        &[],
        "a protocol does no I/O and knows no other",
    ),
    row(
        "pppoe",
        &["base", "wire"],
        &["sim"],
        "a protocol does no I/O and knows no other; simulation is for its tests",
    ),
    row(
        "forward",
        &["base", "wire"],
        &["reactor"],
        "what becomes of a packet depends on its bytes and on tables, not on how a subscriber came to be there; but the \
         kernel judges what is joined and cut",
    ),
    row(
        "aaa",
        &["base", "wire", "settings"],
        &["sim"],
        "who a subscriber is needs no socket, and no protocol but RADIUS",
    ),
    row(
        "ledger",
        &["reactor"],
        &[],
        "records that wait on disk are octets to their store; its files are those of reactor, so that tests can let \
         their calls fail",
    ),
    row(
        "journal",
        &["base", "reactor"],
        &["sim"],
        "state is octets by key to its log; its disk is a trait, so that tests can let it crash",
    ),
    row(
        "filter",
        &["base", "wire"],
        &[],
        "a filter sees a packet's header and says yes or no",
    ),
    row(
        "nat",
        &["base", "wire"],
        &[],
        "a translation depends on a packet's bytes, the time and tables; who is a subscriber is for others",
    ),
    row(
        "agentx",
        &["base"],
        &[],
        "a subagent is asked for variables by names; what they mean, and how it connects, is for others",
    ),
    row(
        "natlog",
        &[],
        &[],
        "a log of port blocks is files of records to it; what a NAT is, it need not know",
    ),
    row(
        "edge",
        &[
            "base", "wire", "l2tp", "ppp", "pppoe", "aaa", "filter", "forward", "qos", "hqos",
            "nat",
        ],
        &["sim"],
        "puts the protocols together into subscribers, without I/O",
    ),
    row(
        "bgp",
        &["base", "wire"],
        &["sim"],
        "a protocol does no I/O and knows no other; simulation is for its tests",
    ),
    row(
        "sim",
        &["base"],
        &[],
        "a simulated network drives any Machine and knows no protocol",
    ),
    row(
        "reactor",
        &["base"],
        &[],
        "the event core drives any Machine and knows no protocol",
    ),
    row(
        "qos",
        &["base", "wire", "settings"],
        &[],
        "queues know packets' keys, not where packets come from or go to",
    ),
    row(
        "hqos",
        &["base", "qos"],
        &["wire"],
        "subscribers' queues know rates and packets' keys, not what a subscriber is",
    ),
    row(
        "bpf",
        &["wire", "qos"],
        &["reactor"],
        "emits instructions for a classifier and does no I/O; the kernel judges them in tests",
    ),
    row(
        "ping",
        &["base"],
        &["sim"],
        "an experiment's plan and its account need no socket",
    ),
    row("plot", &[], &[], "pictures are made of numbers and names"),
    row(
        "tc",
        &["base", "wire", "qos", "bpf"],
        &[],
        "the kernel's queues as values and bytes; who sends them is for others",
    ),
    row(
        "shaper",
        &["base", "wire", "qos", "reactor"],
        &[],
        "packets pass between interfaces through queues; whose policy it is, and who asks, is for others",
    ),
    row(
        "peering",
        &["base", "wire", "bgp", "reactor", "control"],
        &[],
        "between speakers and TCP; whose speakers they are, and who asks, is for others",
    ),
    row(
        "emulate",
        &[
            "base", "wire", "capfile", "bgp", "peering", "reactor", "plot", "sim", "settings",
        ],
        &[],
        "routers of the real kind in an invented network; the daemon knows nothing of it",
    ),
    row(
        "lab",
        &[
            "base", "wire", "capfile", "trace", "l2tp", "qos", "ping", "plot", "sim", "reactor",
            "shaper",
        ],
        &[],
        "experiments need the parts, never the daemon",
    ),
    row(
        "settings",
        &["base"],
        &[],
        "a file that an operator wrote has places and faults, whatever its keys mean",
    ),
    row(
        "control",
        &["reactor"],
        &[],
        "the socket's protocol is requests and rows; who answers them, and from what, is for others",
    ),
    row(
        "cli",
        &["reactor", "control"],
        &[],
        "every command line shares its exit statuses, tables and progress bars; no command is in it",
    ),
    row(
        "convert",
        &["settings"],
        &[],
        "what became of each option of another program's file; whose options, and whose keys, is for others",
    ),
    row(
        "daemon",
        &[
            "base", "wire", "capfile", "agentx", "l2tp", "ppp", "pppoe", "aaa", "ledger", "filter",
            "forward", "hqos", "edge", "reactor", "bgp", "peering", "settings", "control", "qos",
            "nat", "natlog",
        ],
        &["sim"],
        "the loop, the sockets and the configuration of what runs; no tool and no benchmark",
    ),
    row(
        "bench",
        &[
            "base",
            "wire",
            "capfile",
            "trace",
            "l2tp",
            "pppoe",
            "ppp",
            "aaa",
            "filter",
            "forward",
            "edge",
            "hqos",
            "nat",
            "bpf",
            "qos",
            "ping",
            "plot",
            "reactor",
            "shaper",
            "lab",
            "bgp",
            "emulate",
            "control",
            "cli",
            "tool-demo",
            "tool-qos",
        ],
        &["daemon"],
        "measures everything beside others, so it may use all parts but the binary",
    ),
    row(
        "tool-ctl",
        &["reactor", "control", "cli", "settings", "natlog"],
        &[],
        "an operator talks to the daemon through its socket; only questions about past port blocks read the daemon's log",
    ),
    row(
        "tool-demo",
        &[
            "base", "wire", "aaa", "ppp", "pppoe", "edge", "plot", "reactor", "lab", "control",
            "cli",
        ],
        &[],
        "runs daemons as processes and asks them through their sockets; the hosts of its street are clients of an edge",
    ),
    row(
        "tool-doctor",
        &["base", "wire", "reactor", "settings", "daemon", "cli"],
        &[],
        "a host is held against the daemon's own reading of the configuration",
    ),
    row(
        "tool-filter",
        &["base", "wire", "capfile", "filter", "settings", "cli"],
        &[],
        "rules are checked and explained without a daemon",
    ),
    row(
        "tool-import",
        &["base", "convert", "settings", "cli", "daemon"],
        &[],
        "reads other daemons' files; the daemon's own reader judges the result",
    ),
    row(
        "tool-ping",
        &["base", "wire", "ping", "plot", "reactor", "settings", "cli"],
        &[],
        "an experiment, its sockets and its files; no daemon",
    ),
    row(
        "tool-qos",
        &[
            "base", "wire", "capfile", "bpf", "qos", "tc", "reactor", "shaper", "settings",
            "convert", "control", "cli",
        ],
        &[],
        "a policy checked, run, shown and drawn; no daemon of the edge",
    ),
    row(
        "tool-emulate",
        &[
            "base", "reactor", "bgp", "peering", "emulate", "settings", "control", "cli",
        ],
        &[],
        "emulations run and are asked as the daemon is",
    ),
    row(
        "tool-lab",
        &[
            "base",
            "ping",
            "plot",
            "qos",
            "reactor",
            "lab",
            "control",
            "cli",
            "tool-ping",
        ],
        &[],
        "the command line of experiments; one of them runs beside the pings of another command",
    ),
    row(
        "tool-top",
        &["control", "cli"],
        &[],
        "a screen of rows that the control socket sends; it knows no protocol",
    ),
    row(
        "tool-tour",
        &["plot", "emulate", "lab", "cli", "tool-demo"],
        &[],
        "three measurements of others on one page; it measures nothing itself",
    ),
    row(
        "tool-trace",
        &[
            "wire", "capfile", "trace", "paths", "plot", "qos", "twin", "reactor", "cli",
        ],
        &[],
        "a command line over the analyser; signals come from the event core",
    ),
    row(
        "tool-web",
        &["control", "cli"],
        &[],
        "pages and metrics come from the control socket alone; axum and tokio are in no other crate",
    ),
    row(
        "headend",
        &[
            "bench",
            "cli",
            "daemon",
            "tool-ctl",
            "tool-demo",
            "tool-doctor",
            "tool-emulate",
            "tool-filter",
            "tool-import",
            "tool-lab",
            "tool-ping",
            "tool-qos",
            "tool-top",
            "tool-tour",
            "tool-trace",
            "tool-web",
        ],
        &["base", "capfile", "ping", "reactor", "wire"],
        "the binary is the clap tree: nothing uses it",
    ),
    row(
        "fuzz",
        &[
            "base",
            "wire",
            "capfile",
            "paths",
            "trace",
            "twin",
            "l2tp",
            "ppp",
            "pppoe",
            "aaa",
            "agentx",
            "filter",
            "forward",
            "nat",
            "edge",
            "qos",
            "tc",
            "ping",
            "lab",
            "bgp",
            "tool-import",
            "tool-qos",
            "tool-web",
        ],
        &[],
        "a fuzz target feeds decoders and cores, which do no I/O",
    ),
    row(
        "interop",
        &["base", "wire", "capfile", "plot", "nat", "qos"],
        &[],
        "a peer's view: it runs the binary; but the kernel's verdict on each packet is held against the queues' own, and \
         the tables that peers write down are read",
    ),
    row(
        "oracle",
        &[],
        &["wire", "capfile"],
        "other people's decoders, against ours: tests alone",
    ),
    row("xtask", &[], &[], "it must build when nothing else does"),
];

/// Checks every dependency between workspace crates against the table, and the table against the crates.
///
/// # Errors
/// One line for each dependency that is missing from the table, and for each entry of the table that no crate
/// needs any more.
pub(crate) fn check(members: &[Member]) -> Result<String, Vec<String>> {
    let missing = members.iter().flat_map(faults_of);
    let stale = ALLOWED.iter().flat_map(|row| stale(row, members));
    let faults: Vec<String> = missing.chain(stale).collect();
    let arrows: usize = members.iter().map(|member| member.uses.len()).sum();
    if faults.is_empty() {
        Ok(format!("{} crates, {arrows} arrows", members.len()))
    } else {
        Err(faults)
    }
}

fn faults_of(member: &Member) -> Vec<String> {
    let Some(row) = ALLOWED.iter().find(|row| row.krate == member.name) else {
        return vec![format!(
            "crate {} has no row in xtask/src/arrows.rs",
            member.name
        )];
    };
    member
        .uses
        .iter()
        .filter(|(used, kind)| {
            let in_tests = kind.as_deref() == Some("dev") && row.tests_use.contains(&used.as_str());
            !in_tests && !row.uses.contains(&used.as_str())
        })
        .map(|(used, kind)| {
            let kind = kind
                .as_deref()
                .map(|kind| format!(" ({kind}-dependency)"))
                .unwrap_or_default();
            format!(
                "{} -> {used}{kind} is not allowed: {}",
                member.name, row.why
            )
        })
        .collect()
}

/// The entries of a row that no dependency of its crate needs.
fn stale(row: &Row, members: &[Member]) -> Vec<String> {
    let Some(member) = members.iter().find(|member| member.name == row.krate) else {
        return vec![format!("{} has a row, but is no crate", row.krate)];
    };
    let is_needed = |used: &str, in_tests: bool| {
        let mut kinds = member.uses.iter().filter(|(name, _)| name == used);
        kinds.any(|(_, kind)| (kind.as_deref() == Some("dev")) == in_tests)
    };
    let entries = |list: &'static [&'static str], in_tests| {
        let unused = list
            .iter()
            .filter(move |used| !is_needed(used, in_tests))
            .map(move |used| {
                let of = if in_tests { "its tests" } else { "it" };
                format!(
                    "{} -> {used} is stale: {of} no longer depend{} on that crate; remove the entry",
                    row.krate,
                    if in_tests { "" } else { "s" }
                )
            });
        unused.collect::<Vec<_>>()
    };
    let mut faults = entries(row.uses, false);
    faults.extend(entries(row.tests_use, true));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, uses: &[(&str, Option<&str>)]) -> Member {
        Member {
            name: name.to_owned(),
            package: name.to_owned(),
            directory: Default::default(),
            uses: uses
                .iter()
                .map(|(used, kind)| ((*used).to_owned(), kind.map(str::to_owned)))
                .collect(),
        }
    }

    #[test]
    fn an_arrow_in_the_table_passes() {
        assert!(faults_of(&member("l2tp", &[("wire", None)])).is_empty());
    }

    #[test]
    fn an_arrow_the_other_way_is_named() {
        let faults = faults_of(&member("base", &[("wire", None)]));
        assert!(
            faults[0].starts_with("base -> wire is not allowed"),
            "{faults:?}"
        );
    }

    #[test]
    fn the_simulator_is_for_a_cores_tests_only() {
        assert!(faults_of(&member("l2tp", &[("sim", Some("dev"))])).is_empty());
        assert_eq!(faults_of(&member("l2tp", &[("sim", None)])).len(), 1);
    }

    #[test]
    fn an_arrow_that_no_dependency_needs_is_stale() {
        let row = row("l2tp", &["base", "wire"], &["sim"], "");
        let of = |uses: &[(&str, Option<&str>)]| stale(&row, &[member("l2tp", uses)]);
        let all = [
            ("base", None),
            ("wire", Some("build")),
            ("sim", Some("dev")),
        ];
        assert_eq!(of(&all), Vec::<String>::new());
        let faults = of(&[("base", None), ("sim", Some("dev"))]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("l2tp -> wire is stale"), "{faults:?}");
        // A dependency of the tests alone does not need the entry for the crate, nor the other way around.
        let faults = of(&[("base", None), ("wire", Some("dev")), ("sim", None)]);
        assert_eq!(faults.len(), 2);
        assert!(faults[1].starts_with("l2tp -> sim is stale"), "{faults:?}");
        assert_eq!(stale(&row, &[]).len(), 1);
    }

    #[test]
    fn the_table_is_that_of_this_tree() {
        let metadata = crate::cargo::Metadata::read().unwrap();
        check(&metadata.members()).unwrap();
    }

    #[test]
    fn a_crate_without_a_row_fails() {
        let faults = faults_of(&member("nowhere", &[]));
        assert!(faults[0].contains("crate nowhere has no row"), "{faults:?}");
    }

    #[test]
    fn the_table_has_no_cycle() {
        // Each crate may use only crates that the walk upwards from `base` has already passed.
        let mut settled: Vec<&str> = Vec::new();
        while settled.len() < ALLOWED.len() {
            let before = settled.len();
            for row in ALLOWED {
                if !settled.contains(&row.krate)
                    && row.uses.iter().all(|used| settled.contains(used))
                {
                    settled.push(row.krate);
                }
            }
            assert!(
                settled.len() > before,
                "a cycle among what is left after {settled:?}"
            );
        }
    }
}
