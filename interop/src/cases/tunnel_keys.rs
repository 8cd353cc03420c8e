//! The published tunnel experiment: a ping and a copy by scp inside one IPIP tunnel, which a router's queues see as one
//! flow until the policy names the headers inside. The router is that of [`nat_router`](super::nat_router), without NAT.

use super::nat_router::ROUTER;
use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};

/// The copy runs on while the keys change. `sshd` has a host key, a user's key and a port of its own.
const COPY: &str = r#"
ip -n provider route add 192.168.1.0/24 via 203.0.113.2
tunnel() {
ip -n $1 tunnel add inner mode ipip local $2 remote $3; ip -n $1 addr add $4/24 dev inner
ip -n $1 link set inner up; on $1 ethtool -K inner gso off tso off gro off > /dev/null
}
tunnel a 192.168.1.11 198.51.100.7 10.1.1.1; tunnel far 198.51.100.7 192.168.1.11 10.1.1.2
# What the copy has under way fits into the queue.
on far sysctl -qw net.ipv4.tcp_rmem='4096 200000 200000'
mkdir -p /run/sshd
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f $key; done; chmod 600 user.pub
cat > sshd_config <<END
Port 2222
ListenAddress 10.1.1.2
HostKey /tmp/host
AuthorizedKeysFile /tmp/user.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
StrictModes no
PidFile none
Subsystem sftp internal-sftp
END
on far /usr/sbin/sshd -D -e -f /tmp/sshd_config 2> $work/sshd.log & sleep 1
./headend qos apply before.toml --wan wan0
head -c 20000000 /dev/urandom > file
on a scp -q -P 2222 -i user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null file root@10.1.1.2:/tmp/copy \
2> $work/scp.log & copy=$!
while test "$(stat -c %s copy 2> /dev/null || echo 0)" -lt 300000; do kill -0 $copy; sleep 0.2; done
pings() { on a ping -n -D -i 0.1 -c $1 -W 5 10.1.1.2 || true; }
pings 40 > $work/before
pings 20 > $work/meanwhile & sleep 1; ./headend qos apply after.toml --wan wan0; wait $!
pings 40 > $work/after
tc -s qdisc show dev wan0 > $work/queues
kill -0 $copy; test "$(stat -c %s copy)" -gt 1000000; kill $copy
./headend qos remove --wan wan0
"#;

/// The round trips in milliseconds, shortest first, and how many pings were lost.
fn pings(bench: &Bench<'_>, name: &str) -> Result<(Vec<f64>, u32)> {
    let text = std::fs::read_to_string(bench.directory.join(name))?;
    let mut trips = Vec::new();
    for line in text.lines() {
        if let Some((_, time)) = line.split_once(" time=") {
            trips.push(time.trim_end_matches(" ms").parse::<f64>()?);
        }
    }
    trips.sort_by(f64::total_cmp);
    let sent = text
        .lines()
        .find(|line| line.contains(" packets transmitted"));
    let sent = sent
        .and_then(|line| line.split(' ').next())
        .with_context(|| text.clone())?;
    let lost = sent.parse::<usize>()? - trips.len();
    Ok((trips, u32::try_from(lost)?))
}

/// With keys of the outer header the ping waits behind the copy; with those of the innermost one it does not. The change
/// loses no packet.
pub(crate) fn parts_a_ping_from_a_copy(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    for (name, keys) in [("before.toml", "plain"), ("after.toml", "innermost")] {
        let policy = format!(
            "[link]\nup = \"2mbit\"\n[shape]\ntemplate = \"sfq\"\nflow_keys = \"{keys}\"\n[kernel]\nclassifier = \"bpf\"\n"
        );
        std::fs::write(bench.directory.join(name), policy)?;
    }
    let said = kernel::boot(bench, &[ROUTER, COPY].concat())?;
    let (before, lost_before) = pings(bench, "before")?;
    let (meanwhile, lost_meanwhile) = pings(bench, "meanwhile")?;
    let (after, lost_after) = pings(bench, "after")?;
    ensure!(
        before.len() >= 20 && after.len() >= 20,
        "{before:?} {after:?}"
    );
    let median = |trips: &[f64]| trips[trips.len() / 2];
    let notes = format!(
        "outer keys: median {} ms, longest {} ms, {lost_before} of 40 lost\n\
         keys changed meanwhile: {} answered, {lost_meanwhile} of 20 lost\n\
         innermost keys: median {} ms, longest {} ms, {lost_after} of 40 lost\n",
        median(&before),
        before[before.len() - 1],
        meanwhile.len(),
        median(&after),
        after[after.len() - 1],
    );
    std::fs::write(bench.directory.join("round-trips.txt"), &notes)?;
    ensure!(median(&before) >= 10.0 * median(&after), "{notes}");
    ensure!(lost_before + lost_meanwhile + lost_after == 0, "{notes}");
    ensure!(said.contains("as it was"), "{said}");
    let queues = std::fs::read_to_string(bench.directory.join("queues"))?;
    ensure!(
        queues.contains("qdisc sfq") && !queues.replace("(dropped 0,", "").contains("dropped"),
        "{queues}"
    );
    Ok(())
}
