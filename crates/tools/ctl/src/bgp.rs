//! `headend show bgp ...` and `headend bgp ...`: routes, and who they come from.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use cli::Socket;
use cli::table::Column;
use cli::table::Shown::{Age, Bytes, Number, Tenths, Text};
use control::request::{BgpNeighbors, BgpPeer, BgpRoutes, BgpVerb, BgpWhose, Do};

/// What is shown.
#[derive(Debug, Subcommand)]
pub(super) enum Show {
    /// The router and its peers, a line each
    Summary(BgpWhose),
    /// All about the peers, or one
    #[command(visible_alias = "neighbours")]
    Neighbors(BgpNeighbors),
    /// Routes: all, those of a prefix with the reason why the best is the best, or those of a peer
    #[command(visible_alias = "routes", after_help = ROUTE_HELP)]
    Route(BgpRoutes),
    /// What the tables hold, and how much memory they take
    Rib(BgpWhose),
    /// What happened of late: states, notifications, malformed messages
    Events(BgpNeighbors),
}

const ROUTE_HELP: &str = "\
Before each route: * it may be used, > it is the best, i it came from within our AS, S its peer restarts.

Examples:
  headend show bgp route                             # all routes
  headend show bgp route 198.51.100.0/24             # all about one prefix, and why its best is the best
  headend show bgp route 198.51.100.7                # the longest prefix that it is in
  headend show bgp route 198.51.100.0/22 --longer
  headend show bgp route --received 192.0.2.7
  headend show bgp route --advertised upstream --json";

impl Show {
    /// What was typed, as a request.
    pub(super) fn request(&self) -> Do {
        match self {
            Show::Summary(whose) => Do::ShowBgpSummary(whose.clone()),
            Show::Neighbors(which) => Do::ShowBgpNeighbors(which.clone()),
            Show::Route(which) => Do::ShowBgpRoute(which.clone()),
            Show::Rib(whose) => Do::ShowBgpRib(whose.clone()),
            Show::Events(which) => Do::ShowBgpEvents(which.clone()),
        }
    }

    /// The schema whose headings stand even over no rows.
    pub(super) fn schema(&self) -> &'static str {
        match self {
            Show::Summary(_) => "bgp.neighbor/1",
            Show::Neighbors(_) => "bgp.neighbor.detail/1",
            Show::Route(which) if which.prefix.is_some() && !which.longer => "bgp.path/1",
            Show::Route(_) => "bgp.route/1",
            Show::Rib(_) => "bgp.rib/1",
            Show::Events(_) => "bgp.event/1",
        }
    }
}

/// Act on peers of the BGP speaker.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    socket: Socket,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start a peer that was stopped
    Start(Peer),
    /// Stop a peer
    Stop(Told),
    /// End a peer's session, and start it again
    Reset(Told),
    /// Ask a peer for its routes again, or send it ours
    Refresh {
        #[command(flatten)]
        peer: Peer,
        /// Send ours again instead
        #[arg(long)]
        out: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Peer {
    /// Its address or name, or all
    peer: String,
    /// A router of an emulation; a daemon has one only
    #[arg(long, value_name = "NAME")]
    router: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Told {
    #[command(flatten)]
    peer: Peer,
    /// A line for the peer's operator
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,
}

/// Asks for what was typed.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (peer, verb, text) = match &args.verb {
        Verb::Start(peer) => (peer, BgpVerb::Start, ""),
        Verb::Stop(told) => (&told.peer, BgpVerb::Stop, told.message.as_str()),
        Verb::Reset(told) => (&told.peer, BgpVerb::Reset, told.message.as_str()),
        Verb::Refresh { peer, out: false } => (peer, BgpVerb::RefreshIn, ""),
        Verb::Refresh { peer, out: true } => (peer, BgpVerb::RefreshOut, ""),
    };
    let request = Do::BgpPeer(BgpPeer {
        peer: peer.peer.clone(),
        verb,
        text: text.to_owned(),
        router: peer.router.clone(),
    });
    let mut client = args.socket.connect()?;
    let peers = client.call(&request)?;
    let many = if peers == 1 { "peer" } else { "peers" };
    println!("{peers} {many}");
    Ok(ExitCode::SUCCESS)
}

pub(super) const SUMMARY: &[Column] = &[
    ("BGP router identifier", "router_id", Text),
    ("local AS number", "asn", Number),
    ("peers", "peers", Number),
    ("  that came by a network", "dynamic", Number),
    ("  established", "established", Number),
    ("prefixes", "prefixes", Number),
    ("connections refused", "refused", Number),
];
pub(super) const NEIGHBOR: &[Column] = &[
    ("NEIGHBOR", "address", Text),
    ("V", "version", Number),
    ("AS", "asn", Number),
    ("MSGRCVD", "messages_in", Number),
    ("MSGSENT", "messages_out", Number),
    ("UP/DOWN", "since_s", Age),
    ("STATE/PFXRCD", "state_or_prefixes", Number),
    ("PFXSNT", "prefixes_out", Number),
    ("DESC", "name", Text),
];
pub(super) const DETAIL: &[Column] = &[
    ("neighbor", "address", Text),
    ("  name", "name", Text),
    ("  origin", "origin", Text),
    ("  remote AS", "asn", Number),
    ("  local AS", "local_asn", Number),
    ("  router identifier", "router_id", Text),
    ("  state", "state", Text),
    ("  for", "since_s", Age),
    ("  local end", "local", Text),
    ("  remote end", "remote", Text),
    ("  hold time (s)", "hold_time_s", Number),
    ("  keepalive interval (s)", "keepalive_s", Number),
    ("  last heard", "heard_s_ago", Age),
    ("  hold time left", "hold_left_s", Age),
    ("  tried again in", "next_try_s", Age),
    ("  tried in vain", "retries", Number),
    ("  families", "families", Text),
    ("  capabilities", "capabilities", Text),
    ("  its role", "role", Text),
    ("  it restarts within (s)", "graceful_restart_s", Number),
    ("  its stale routes go in", "stale_left_s", Age),
    ("  prefixes received", "prefixes_in", Number),
    ("  prefixes sent", "prefixes_out", Number),
    ("  messages received", "messages_in", Number),
    ("  messages sent", "messages_out", Number),
    ("  times established", "ups", Number),
    ("  collisions", "collisions", Number),
    ("  takes nothing now", "is_blocked", Text),
    ("  last ended because", "last_end", Text),
    ("  malformed UPDATEs", "malformed", Number),
    ("    the last one", "malformed_s_ago", Age),
    ("    because", "malformed_because", Text),
    ("    its octets", "malformed_octets", Text),
];
pub(super) const ROUTE: &[Column] = &[
    ("", "status", Text),
    ("NETWORK", "prefix", Text),
    ("NEXT HOP", "next_hop", Text),
    ("METRIC", "med", Number),
    ("LOCPRF", "local_pref", Number),
    ("PATH", "as_path", Text),
    ("ORIGIN", "origin", Text),
];
pub(super) const PATH: &[Column] = &[
    ("prefix", "prefix", Text),
    ("  best", "best", Text),
    ("  because", "because", Text),
    ("  from", "peer", Text),
    ("  of AS", "peer_asn", Number),
    ("  with identifier", "peer_router_id", Text),
    ("  path identifier", "path_id", Number),
    ("  next hop", "next_hop", Text),
    ("  AS path", "as_path", Text),
    ("  origin", "origin", Text),
    ("  metric (MED)", "med", Number),
    ("  local preference", "local_pref", Number),
    ("  communities", "communities", Text),
    ("  extended communities", "ext_communities", Text),
    ("  large communities", "large_communities", Text),
    ("  only to customer", "otc", Number),
    ("  stale", "stale", Text),
    ("  other attributes", "unknown", Text),
];
pub(super) const RIB: &[Column] = &[
    ("prefixes", "prefixes", Number),
    ("routes", "routes", Number),
    ("attribute sets", "attribute_sets", Number),
    ("update groups", "update_groups", Number),
    ("counted", "counted", Number),
    ("memory", "memory_bytes", Bytes),
    ("  of that", "memory", Bytes),
    ("networks of ours", "announced", Number),
    ("routes in the kernel", "installed", Number),
    ("  that it refused", "install_refused", Number),
];
pub(super) const EVENT: &[Column] = &[
    ("AGO", "s_ago", Age),
    ("PEER", "peer", Text),
    ("KIND", "kind", Text),
    ("WHAT", "what", Text),
];
pub(super) const HOLD: &[Column] = &[
    ("PEER", "peer", Text),
    ("HOLD TIME (S)", "hold_time_s", Number),
    ("HEARD", "heard_s_ago", Age),
    ("LEFT", "hold_left_s", Age),
];
pub(super) const EMULATED_WAITS: &[Column] = &[
    ("THREAD", "thread", Number),
    ("POLLER", "poller", Text),
    ("WATCHED", "watched", Number),
    ("WAITS", "waits", Number),
    ("READY", "ready", Number),
    ("READY PER WAIT", "ready_per_wait", Tenths),
    ("WAITS PER S", "waits_per_s", Tenths),
    ("WAITED (S)", "waited_s", Tenths),
    ("BUSY (S)", "busy_s", Tenths),
];
pub(super) const EMULATED_HANDLER: &[Column] = &[
    ("THREAD", "thread", Number),
    ("HANDLER", "name", Text),
    ("CALLS", "calls", Number),
    ("TOTAL us", "total_us", Tenths),
    ("MEAN us", "mean_us", Tenths),
    ("LONGEST us", "longest_us", Tenths),
];
