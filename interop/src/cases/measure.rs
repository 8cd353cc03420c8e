//! Measurements, which `cargo xtask interop --measure` runs: instructions of headend beside those of Linux's kernel and of
//! other daemons. The guest counts instructions, two nanoseconds of its clock each, so that a time in it is a number of
//! instructions, whatever this machine does meanwhile. Caches and memory do not count.

use crate::kernel;
use crate::runner::Bench;
use crate::subscribers::private_file;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

/// Memory in megabytes and seconds of this machine for a guest that measures.
const ROOMY: [&str; 4] = ["-m", "2048", "-t", "3000"];

/// Sizes of the table of connections.
const CONNECTIONS: [u32; 3] = [1_024, 16_384, 262_144];

/// The namespaces of [`super::kernel_nat`], with time-outs that no measurement reaches, and buckets for each connection.
const PREPARE: &str = "
sysctl -qw net.netfilter.nf_conntrack_max=400000
echo 262144 > /sys/module/nf_conntrack/parameters/hashsize
plain() { router; nat nft flush ruleset; nat ip route del blackhole 203.0.113.1/32; nat ip route add 203.0.113.1/32 dev i0; }
full() { router; nat sysctl -qw net.netfilter.nf_conntrack_udp_timeout=9000 net.netfilter.nf_conntrack_udp_timeout_stream=9000; }
one() { s=$2; [ $s -lt 16384 ] || s=16384; echo \"$1 $2 $(/tmp/probe flood inside $2 $2) $(/tmp/probe flood inside $2 $s) $(/tmp/probe flood outside $2 $s)\" >> translation.txt; }
";

/// A translated packet and a new connection: conntrack with `snat`, over forwarding alone; and the crate `nat`.
pub(crate) fn translation(bench: &Bench<'_>) -> Result<()> {
    std::fs::copy(std::env::current_exe()?, bench.directory.join("probe"))?;
    kernel::bring_headend(bench)?;
    let mut script = [super::kernel_nat::ROUTER, PREPARE].concat();
    script.push_str("rm -f translation.txt; plain; one warm 1024; one forwarding 16384\n");
    for count in CONNECTIONS {
        writeln!(script, "full; one conntrack {count}")?;
    }
    let sizes = CONNECTIONS.map(|count| count.to_string()).join(",");
    writeln!(
        script,
        "cp headend /tmp; cd /tmp; ./headend bench nat --sizes {sizes} --rounds 1 --json > bench.json; cd - > /dev/null; cp /tmp/bench.json ."
    )?;
    kernel::boot_with(bench, &script, &ROOMY)?;
    let text = std::fs::read_to_string(bench.directory.join("translation.txt"))?;
    let row = |name: &str, count: u32| -> Result<[f64; 3]> {
        let start = format!("{name} {count} ");
        let line = text.lines().find(|line| line.starts_with(&start));
        let line = line.with_context(|| start.clone())?;
        let words: Vec<f64> = line[start.len()..]
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        words.try_into().ok().context("three figures")
    };
    let [_, base_out, base_in] = row("forwarding", 16_384)?;
    println!("instructions over forwarding alone ({base_out:.0} out, {base_in:.0} in):");
    println!("  connections  conntrack: new, out, in   headend: new, out, in");
    let bench_json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(
        bench.directory.join("bench.json"),
    )?)?;
    let rows = bench_json["tables"][0]["rows"].as_array();
    let rows = rows.context("a table of headend bench nat")?;
    for count in CONNECTIONS {
        let [new, out, back] = row("conntrack", count)?;
        let ours = |what: &str| -> Result<f64> {
            let mut own = rows.iter().map(|row| &row["cells"]);
            let cells = own.find(|cells| cells[0] == what && cells[1] == count);
            let ns = cells.and_then(|cells| cells[2].as_f64());
            ns.map(|ns| ns / 2.0).with_context(|| what.to_owned())
        };
        println!(
            "  {count:>11}  {:>9.0} {:>6.0} {:>6.0}  {:>15.0} {:>5.0} {:>5.0}",
            new - base_out,
            out - base_out,
            back - base_in,
            ours("new mapping")?,
            ours("packet out")?,
            ours("packet in")?
        );
    }
    Ok(())
}

/// Sessions of a run.
const SESSIONS: [u32; 2] = [50, 200];

/// Hosts: pppd with the kernel's PPPoE, IPv4 and IPv6, all on one interface. Each access concentrator runs in a control
/// group of its own, whose time and memory are read; `usage` prints them, with the time of the whole guest.
const HOSTS_AND_METER: &str = r#"
mount -t cgroup2 none /sys/fs/cgroup; echo +memory > /sys/fs/cgroup/cgroup.subtree_control
ulimit -n 65536
usage() {
  sleep 2; g=/sys/fs/cgroup/$1
  read -r up idle < /proc/uptime
  awk -v up=$up -v idle=$idle '
    $1 == "usage_usec" { cpu = $2 } $1 == "anon" { anon = $2 } $1 == "kernel" { kernel = $2 } $1 == "sock" { sock = $2 }
    END { printf "%.0f %.0f %.0f", cpu, (up - idle) * 1000000, anon + kernel + sock }' $g/cpu.stat $g/memory.stat
}
serve() { mkdir -p /sys/fs/cgroup/$1; ( echo $BASHPID > /sys/fs/cgroup/$1/cgroup.procs; shift; exec ip netns exec bng "$@" ) > $1.server.log 2>&1 & server=$!; }
up() { [ $(host ip -o link show type ppp 2> /dev/null | grep -c LOWER_UP) -ge $1 ]; }
hosts() {
  for n in $(seq $1 $2); do
    ip netns exec host pppd file /tmp/host.ppp plugin rp-pppoe.so host-uniq $(printf %08x $n) wire > /dev/null 2>&1 &
    [ $((n % 10)) -ne 0 ] || for i in $(seq 600); do up $n && break; sleep 1; done
  done
  for i in $(seq 600); do up $2 && return; sleep 1; done
  echo "$(host ip -o link show type ppp | wc -l) of $2 hosts" >&2; cp *.log $work; exit 1
}
run() {
  name=$1; first=$(usage $name); hosts 1 FEW; second=$(usage $name); hosts $((FEW + 1)) MANY; third=$(usage $name)
  echo "$name $first $second $third" >> $work/sessions.txt
  for p in $(pidof pppd); do [ "$(ip netns identify $p)" = host ] && kill $p; done
  for i in $(seq 600); do up 1 || break; sleep 1; done
  kill $server; wait $server || true; sleep 5; for p in $(pidof pppd); do kill -9 $p; done
}
mkdir ppp; printf 'ann * sesame *\n' > ppp/chap-secrets; chmod 600 ppp/chap-secrets; mount --bind ppp /etc/ppp
"#;

/// Set-up and memory of a dual-stack session: headend, rp-pppoe's server with pppd and the kernel's PPPoE, and accel-ppp.
pub(crate) fn sessions(bench: &Bench<'_>) -> Result<()> {
    super::pppoe::bring(bench)?;
    let ours = "[control]\nsocket = \"/tmp/bng.sock\"\n\
        [pppoe]\nac_name = \"bng1\"\nsessions_per_mac = 0\n[[pppoe.interface]]\nname = \"wire\"\n\
        [ppp]\naddress = \"10.64.255.1\"\nauthenticate = [\"chap\"]\naddress_v6 = \"2001:db8::1\"\n\
        [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/22\"]\n[users]\nfile = \"users.toml\"\n[tun]\nname = \"inside\"\n\
        [[prefix_pool]]\nname = \"links\"\nranges = [\"2001:db8:4::/46\"]\nlength = 64\n[ipv6]\nlink_pool = \"links\"\n";
    private_file(bench, "bng.toml", ours)?;
    let users = "[[user]]\nname = \"ann\"\npassword = \"sesame\"\n";
    private_file(bench, "users.toml", users)?;
    let host = "nodetach\nnoauth\nnodefaultroute\nuser ann\npassword sesame\n+ipv6\nmtu 1400\nmru 1400\nnoccp\n";
    std::fs::write(bench.directory.join("host.ppp"), host)?;
    let server = "require-chap\nname there\nauth\nmtu 1400\nmru 1400\n+ipv6\nnoccp\n";
    std::fs::write(bench.directory.join("server.ppp"), server)?;
    let [few, many] = SESSIONS.map(|count| count.to_string());
    let mut servers = vec![
        "serve headend ./headend run --config bng.toml\nsoon ./headend show server --socket bng.sock; run headend\n".to_owned(),
        "serve pppoe-server pppoe-server -F -k -q /usr/sbin/pppd -I wire -C there -N 1000 -L 10.9.9.1 -R 10.9.10.1 -O /tmp/server.ppp\n\
         sleep 1; run pppoe-server\n"
            .to_owned(),
    ];
    match bench.accel_ppp {
        None => println!("left out: accel-ppp, which needs --accel-ppp DIR with its sources"),
        Some(place) => {
            std::fs::write(bench.directory.join("accel.conf"), accel_ppp(place))?;
            servers.push(format!(
                "cp $work/accel.conf /tmp; cp ppp/chap-secrets /tmp/accel.secrets\n\
                 serve accel-ppp {} -c /tmp/accel.conf; sleep 1; run accel-ppp\n",
                place.join("accel-pppd").display()
            ));
        }
    }
    // Hundreds of processes, one guest for each access concentrator.
    for server in servers {
        let script = [super::pppoe::HOSTS, HOSTS_AND_METER, &server].concat();
        let script = script.replace("FEW", &few).replace("MANY", &many);
        kernel::boot_with(bench, &script, &ROOMY)?;
    }
    print_sessions(&std::fs::read_to_string(
        bench.directory.join("sessions.txt"),
    )?)
}

/// accel-ppp's configuration for dual-stack sessions, without a log of each packet.
fn accel_ppp(place: &Path) -> String {
    let sections = "[pppoe]\nac-name=there\ninterface=wire\n[ipv6-pool]\n2001:db8:4::/46,64\n";
    super::accel_ppp::settings(place, "pppoe\nipv6pool\nipv6_nd", sections)
        .replace("ipv6=deny", "ipv6=require")
        .replace("10.9.9.7-10", "10.9.12.0/22")
        .replace("verbose=1", "verbose=0")
        .replace("level=5", "level=1")
}

fn print_sessions(text: &str) -> Result<()> {
    println!(
        "a dual-stack session of PPPoE, sessions {0} to {1}; in brackets 1 to {0}:",
        SESSIONS[0], SESSIONS[1]
    );
    println!(
        "  access concentrator  its instructions  the guest's, hosts included  its memory in bytes"
    );
    for line in text.lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let figures: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>()?;
        let [first, second, third]: [&[f64]; 3] = figures
            .chunks(3)
            .collect::<Vec<_>>()
            .try_into()
            .ok()
            .context("three readings")?;
        let counts = SESSIONS.map(f64::from);
        // A microsecond is 500 instructions.
        let each = |at: usize, factor: f64| {
            let later = (third[at] - second[at]) * factor / (counts[1] - counts[0]);
            let early = (second[at] - first[at]) * factor / counts[0];
            format!("{later:.0} ({early:.0})")
        };
        println!(
            "  {name:<19}  {:<16}  {:<27}  {}",
            each(0, 500.0),
            each(1, 500.0),
            each(2, 1.0)
        );
    }
    Ok(())
}
