//! Subscribers of ours behind NAT: what hosts outside see of them, who `headend nat who` says they are, and what readers of
//! IPFIX and syslog were sent.
//!
//! ```text
//! (LAC) two homes -- outside -- headend ==== wire ==== headend, NAT -- inside -- hosts, collectors (LNS)
//! ```

use super::SOON;
use crate::headend::Headend;
use crate::net::Namespace;
use crate::process::{Process, until};
use crate::runner::Bench;
use crate::subscribers::{
    BEYOND, address, client_settings, lns_settings, move_in, ping, ping_answered, private_file,
    users,
};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// dumpcap hands packets over in blocks; after this delay it has received the last one.
const SETTLE: Duration = Duration::from_millis(500);

/// The external addresses, and a port below the blocks.
const EXTERNAL: &str = "203.0.113.0/30";
const FORWARDED: &str = "203.0.113.1:80";

/// Packets are carried on two cores.
const TWO_CORES: &str = "[event]\nshards = 2\n";

/// A TCP server that sends each client its address, and prints it.
const TCP: &str = "import socket,sys
server=socket.create_server((sys.argv[1],int(sys.argv[2])))
print('ready',flush=True)
while True:
  peer,(host,port)=server.accept()
  print(f'peer {host}:{port}',flush=True)
  peer.recv(1000)
  peer.sendall(f'HTTP/1.0 200 OK\\r\\n\\r\\n{host}:{port}'.encode())
  peer.close()
";

/// A UDP host that sends each datagram's source back to it, and prints what it received.
const UDP: &str = "import socket,sys
host=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)
host.bind((sys.argv[1],int(sys.argv[2])))
print('ready',flush=True)
if len(sys.argv)>3: host.sendto(b'hello',(sys.argv[3],int(sys.argv[4])))
while True:
  data,(peer,port)=host.recvfrom(2000)
  print(f'{data.decode()} from {peer}:{port}',flush=True)
  if data!=b'echo' and not data.startswith(b'you'): host.sendto(f'you {peer}:{port}'.encode(),(peer,port))
";

/// An FTP server (RFC 959, RFC 2428) that knows active mode only: it connects from port 20 to where the client says, if that
/// is the client's own address (RFC 2577), and prints each such command and what was stored.
const FTP_SERVER: &str = "import socket,sys
host=sys.argv[1]
server=socket.create_server((host,21))
print('ready',flush=True)
def data():
  one=socket.socket(socket.AF_INET,socket.SOCK_STREAM)
  one.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)
  one.bind((host,20))
  one.settimeout(10)
  one.connect(target)
  return one
while True:
  peer,(client,port)=server.accept()
  lines=peer.makefile('rw',newline='\\r\\n')
  def say(text): lines.write(text+'\\n'); lines.flush()
  say('220 hello')
  for line in lines:
    verb,_,argument=line.rstrip('\\r\\n').partition(' ')
    verb=verb.upper()
    if verb in ('PORT','EPRT'):
      if verb=='PORT':
        numbers=[int(one) for one in argument.split(',')]
        target=('.'.join(map(str,numbers[:4])),numbers[4]*256+numbers[5])
      else:
        fields=argument.split(argument[0])
        target=(fields[2],int(fields[3]))
      print(f'{verb} {target[0]}:{target[1]}',flush=True)
      say('200 ok' if target[0]==client else '501 another host')
    elif verb in ('NLST','RETR'):
      say('150 here it comes')
      one=data()
      one.sendall(b'a\\r\\nb\\r\\n' if verb=='NLST' else b'content'*100000)
      one.close()
      say('226 done')
    elif verb=='STOR':
      say('150 go on')
      one=data()
      count=0
      while part:=one.recv(65536): count+=len(part)
      one.close()
      print(f'stored {count}',flush=True)
      say('226 done')
    elif verb=='QUIT':
      say('221 bye')
      break
    else: say('331 password' if verb=='USER' else '230 ok' if verb=='PASS' else '200 ok')
  peer.close()
";

/// An active client: Python's own, with PORT and then with EPRT.
const FTP_CLIENT: &str = "import ftplib,io,socket,sys
home,server=sys.argv[1:]
class Extended(ftplib.FTP):
  def sendport(self,host,port): return self.sendeprt(host,port)
print('ready',flush=True)
for kind in (ftplib.FTP,Extended):
  ftp=kind(timeout=20)
  ftp.connect(server,21,source_address=(home,0))
  ftp.login('ann','sesame')
  ftp.set_pasv(False)
  for _ in range(5):
    assert ftp.nlst()==['a','b']
  content=io.BytesIO()
  ftp.retrbinary('RETR file',content.write)
  assert content.getvalue()==b'content'*100000
  ftp.storbinary('STOR file',io.BytesIO(b'x'*300000))
  ftp.quit()
  print('finished',kind.__name__,flush=True)
";

/// Starts one of the programs above.
fn host(
    bench: &Bench<'_>,
    namespace: &Namespace,
    name: &str,
    (program, arguments): (&str, &[&str]),
) -> Result<Process> {
    let mut command = namespace.command("python3");
    command.args(["-c", program]).args(arguments);
    let mut process = Process::start(command, name, &bench.directory)?;
    process.wait_for("ready", SOON)?;
    Ok(process)
}

/// What curl prints.
fn curl(namespace: &Namespace, from: Option<&str>, to: &str) -> Result<String> {
    let mut command = namespace.command("curl");
    command.args(["-s", "-S", "--max-time", "10"]);
    if let Some(from) = from {
        command.args(["--interface", from]);
    }
    let output = command.arg(format!("http://{to}/")).output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "curl {to}: {printed}{error}");
    Ok(printed)
}

/// The last word of the line of a process's output that starts with `start`.
fn last_word(process: &mut Process, start: &str) -> Result<String> {
    process.wait_for(start, SOON)?;
    let printed = process.printed();
    let line = printed.lines().find(|line| line.starts_with(start));
    let word = line.and_then(|line| line.split(' ').next_back());
    word.map(str::to_owned).context("a word")
}

fn settings(store: &Path) -> String {
    format!(
        "[users]\nfile = \"users.toml\"\n[nat]\ninside = [\"10.64.0.0/24\"]\nexternal = [\"{EXTERNAL}\"]\n\
         [nat.log]\nstore = \"{}\"\nipfix = \"127.0.0.1:4739\"\nipfix_domain = 7\nsyslog = \"127.0.0.1:5514\"\n",
        store.display()
    )
}

/// Two connected subscribers, and their addresses.
fn two_homes(bench: &Bench<'_>, lns: &Headend, lac: &Headend) -> Result<[String; 2]> {
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, 2)?;
    lns.all_on_line(2)?;
    let near = &bench.wire.lac;
    near.ip(&["route", "replace", EXTERNAL, "dev", "outside"])?;
    let mut homes = ["user1", "user2"].map(str::to_owned);
    for home in &mut homes {
        *home = address(&lns.on_line(home)?)?;
        move_in(near, home)?;
    }
    Ok(homes)
}

/// `headend nat who` about an external endpoint, with the words that follow it.
fn who(lns: &Headend, external: &str, more: &[&str]) -> Result<Value> {
    let words = [&["nat", "who", external], more, &["--json"]].concat();
    Ok(serde_json::from_str(lns.verb(&words)?.trim())?)
}

/// ping, TCP and UDP to hosts outside, hairpinning, port forwarding; `nat who` names the subscriber of each connection that
/// the hosts outside see, also after the daemon was killed.
pub(crate) fn shares_external_addresses(bench: &Bench<'_>) -> Result<()> {
    shares(bench, "")
}

/// The same with a NAT on each of two cores: a home is on one of them, and packets arrive on both.
pub(crate) fn shares_external_addresses_on_two_cores(bench: &Bench<'_>) -> Result<()> {
    shares(bench, TWO_CORES)
}

fn shares(bench: &Bench<'_>, event: &str) -> Result<()> {
    private_file(bench, "users.toml", &users(2))?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let status = far
        .command("sysctl")
        .args(["-qw", "net.ipv4.ip_forward=1"])
        .status()?;
    ensure!(status.success(), "no forwarding");
    let store = bench.directory.join("store");
    let sections = settings(&store) + event;
    let configuration = lns_settings("", "", &sections);
    let lns = Headend::lns(bench, &configuration)?;
    let lac = Headend::lac(bench, &client_settings())?;
    let homes = two_homes(bench, &lns, &lac)?;
    for home in &homes {
        ping_answered(near, BEYOND, &["-c", "3", "-I", home])?;
    }

    // Each host outside sees an external endpoint, and its subscriber has a name.
    let mut web = host(bench, far, "web", (TCP, &[BEYOND, "8080"]))?;
    let seen = curl(near, Some(&homes[0]), &format!("{BEYOND}:8080"))?;
    let logged = last_word(&mut web, "peer")?;
    ensure!(seen == logged, "{seen} and {logged}");
    let external: SocketAddrV4 = seen.parse()?;
    ensure!(external.ip().octets()[..3] == [203, 0, 113] && external.port() >= 1024);
    let answer = who(&lns, &seen, &[])?;
    ensure!(
        answer["name"] == "user1" && answer["inside"] == *homes[0],
        "{answer}"
    );
    let answered_s = answer["at_s"].as_f64().context("a time")?;

    crosses_between_homes(bench, &lns, &homes)?;
    forwards_a_port(bench, &lns, &homes[0])?;
    let row = lns.show(&["nat"])?.remove(0);
    ensure!(
        row["subscribers"] == 2 && row["hairpinned"].as_u64() > Some(0),
        "{row}"
    );
    ensure!(
        row["log_stored"].as_u64() >= Some(2) && row["log_lost"] == 0,
        "{row}"
    );
    let rows = lns.show(&["nat", "--subscribers"])?;
    ensure!(
        rows.len() == 2 && rows.iter().all(|row| row["blocks"] == 1),
        "{rows:?}"
    );

    survives_a_kill(bench, lns, &configuration, (&seen, answered_s))?;
    lac.stop()
}

/// Two homes reach each other's external ports (RFC 4787 REQ-9).
fn crosses_between_homes(bench: &Bench<'_>, lns: &Headend, homes: &[String; 2]) -> Result<()> {
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    let mut echo = host(bench, far, "echo", (UDP, &[BEYOND, "7000"]))?;
    // A datagram of the other home opens its port, through which the first one reaches it.
    let arguments = [&homes[1], "5000", BEYOND, "7000"];
    let mut other = host(bench, near, "other", (UDP, &arguments))?;
    let port = last_word(&mut other, "you")?.replace("from", "");
    let opened = last_word(&mut echo, "hello from")?;
    ensure!(
        port == format!("{BEYOND}:7000"),
        "the answer came from {port}"
    );
    let answer = who(lns, &opened, &[])?;
    ensure!(
        answer["name"] == "user2" && answer["by"] == "block",
        "{answer}"
    );
    let (to, to_port) = opened.split_once(':').context("a port")?;
    let arguments = [&homes[0], "6000", to, to_port];
    let mut first = host(bench, near, "first", (UDP, &arguments))?;
    // Each sees the other's external endpoint (RFC 4787 REQ-9).
    let from = last_word(&mut other, "hello from")?;
    ensure!(from.starts_with("203.0.113."), "{from}");
    ensure!(who(lns, &from, &[])?["name"] == "user1", "{from}");
    let back = last_word(&mut first, "you")?;
    ensure!(back == opened, "{back} answered, not {opened}");
    Ok(())
}

/// The daemon's store answers for the time before it was killed, and knows that nobody has a port since.
fn survives_a_kill(
    bench: &Bench<'_>,
    lns: Headend,
    configuration: &str,
    (seen, answered_s): (&str, f64),
) -> Result<()> {
    // Killed, it forgets its mappings, and its store says so from the next start on.
    std::thread::sleep(SOON / 10);
    lns.process.signal(Signal::KILL)?;
    drop(lns);
    let lns = Headend::lns(bench, configuration)?;
    let before = format!("@{answered_s}");
    let answer = who(&lns, seen, &["at", &before])?;
    ensure!(
        answer["name"] == "user1" && answer["since_s"].as_f64() < Some(answered_s),
        "{answer}"
    );
    let output = Command::new(bench.headend)
        .args(["nat", "who", seen, "at", "2099-01-01T00:00:00Z", "--store"])
        .arg(bench.directory.join("store"))
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.code() == Some(1) && said.contains("nobody"),
        "{said}"
    );
    lns.stop()
}

/// A command forwards a port to a home, and a host outside reaches the home through it.
fn forwards_a_port(bench: &Bench<'_>, lns: &Headend, home: &str) -> Result<()> {
    let _web = host(bench, &bench.wire.lac, "home", (TCP, &[home, "8081"]))?;
    let inside = format!("{home}:8081");
    lns.verb(&["nat", "forward", "add", "tcp", &inside, FORWARDED])?;
    let seen = curl(&bench.wire.lns, Some(BEYOND), FORWARDED)?;
    ensure!(seen.starts_with(BEYOND), "{seen}");
    let answer = who(lns, FORWARDED, &[])?;
    ensure!(
        answer["by"] == "forward" && answer["name"] == "user1",
        "{answer}"
    );
    let listed = lns.verb(&["nat", "forward", "list"])?;
    ensure!(
        listed.contains(FORWARDED) && listed.contains(&inside),
        "{listed}"
    );
    lns.verb(&["nat", "forward", "del", "tcp", FORWARDED])?;
    ensure!(
        curl(&bench.wire.lns, Some(BEYOND), FORWARDED).is_err(),
        "still forwarded"
    );
    Ok(())
}

/// tshark and nfcapd read the IPFIX messages of port blocks, and a syslog server gets a line for each.
pub(crate) fn logs_port_blocks(bench: &Bench<'_>) -> Result<()> {
    private_file(bench, "users.toml", &users(2))?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let flows = bench.directory.join("flows");
    std::fs::create_dir_all(&flows)?;
    let file = bench.directory.join("ipfix.pcapng");
    let mut command = far.command("dumpcap");
    command
        .args(["-q", "-i", "lo", "-f", "udp port 4739", "-w"])
        .arg(&file);
    let mut capture = Process::start(command, "dumpcap", &bench.directory)?;
    capture.wait_for("File:", SOON)?;
    let mut command = far.command("nfcapd");
    command
        .args(["-b", "127.0.0.1", "-p", "4739", "-t", "3600", "-w"])
        .arg(&flows);
    let mut collector = Process::start(command, "nfcapd", &bench.directory)?;
    collector.wait_for("Startup", SOON)?;
    let syslog = host(bench, far, "syslog", (UDP, &["127.0.0.1", "5514"]))?;

    let lns = Headend::lns(
        bench,
        &lns_settings("", "", &settings(&bench.directory.join("store"))),
    )?;
    let lac = Headend::lac(bench, &client_settings())?;
    let homes = two_homes(bench, &lns, &lac)?;
    for home in &homes {
        ping_answered(near, BEYOND, &["-c", "1", "-I", home])?;
    }
    lac.stop()?;
    for name in ["user1", "user2"] {
        lns.gone(name)?;
    }
    // Two blocks were allocated and freed.
    let mut row = Value::Null;
    let sent = until(SOON, || {
        row = lns.show(&["nat"])?.remove(0);
        let is_sent = row["syslog_lines"] == 4 && row["ipfix_messages"].as_u64() >= Some(2);
        Ok((is_sent && row["blocks_used"] == 0).then_some(()))
    })?;
    sent.with_context(|| format!("not four events: {row}"))?;
    lns.stop()?;
    std::thread::sleep(SETTLE);
    capture.signal(Signal::INT)?;
    capture.wait_for_end(SOON)?;
    let _ = collector.stop();

    let printed = syslog.printed();
    for (what, home, name) in [
        ("allocated", &homes[0], "user1"),
        ("freed", &homes[1], "user2"),
    ] {
        let is_it = |line: &&str| {
            line.contains(&format!(
                "NATBLK - {what} inside={home} external=203.0.113."
            )) && line.contains(&format!(" subscriber={name} from"))
        };
        ensure!(
            printed.lines().any(|line| is_it(&line)),
            "{what} {name}: {printed}"
        );
    }
    read_by_tshark(&file, &homes)?;
    read_by_nfdump(bench, &flows, &homes)
}

fn read_by_tshark(file: &Path, homes: &[String; 2]) -> Result<()> {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-d", "udp.port==4739,cflow", "-V"])
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    std::fs::write(file.with_extension("txt"), &*printed)?;
    ensure!(
        !printed.contains("Malformed") && !printed.contains("No template found"),
        "{printed}"
    );
    let count = |text: &str| printed.matches(text).count();
    ensure!(count("Template (Id = 256, Count = 6)") >= 1, "no template");
    for text in [
        "Observation Domain Id: 7",
        "Port Range Start",
        "Port Range End",
    ] {
        ensure!(count(text) >= 1, "no {text}");
    }
    for home in homes {
        ensure!(count(&format!("SrcAddr: {home}")) == 2, "{home}: {printed}");
    }
    Ok(())
}

fn read_by_nfdump(bench: &Bench<'_>, flows: &Path, homes: &[String; 2]) -> Result<()> {
    let output = Command::new("nfdump")
        .arg("-R")
        .arg(flows)
        .args(["-o", "raw"])
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    std::fs::write(bench.directory.join("nfdump.txt"), &*printed)?;
    for home in homes {
        ensure!(printed.contains(home.as_str()), "{home}: {printed}");
    }
    ensure!(printed.contains("203.0.113."), "{printed}");
    Ok(())
}

/// A subscriber that opens many connections uses up its blocks, and no more; the other one is not affected. Reloads take
/// external addresses away and give others.
pub(crate) fn bounds_a_flood_and_reloads(bench: &Bench<'_>) -> Result<()> {
    bounds(bench, "")
}

/// The same on two cores.
pub(crate) fn bounds_a_flood_and_reloads_on_two_cores(bench: &Bench<'_>) -> Result<()> {
    bounds(bench, TWO_CORES)
}

fn bounds(bench: &Bench<'_>, event: &str) -> Result<()> {
    private_file(bench, "users.toml", &users(2))?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let store = bench.directory.join("store");
    let sections = settings(&store).replace(
        "[nat.log]",
        "block_ports = 64\nblocks_per_subscriber = 2\n[nat.log]",
    ) + event;
    let lns = Headend::lns(bench, &lns_settings("", "", &sections))?;
    let lac = Headend::lac(bench, &client_settings())?;
    let homes = two_homes(bench, &lns, &lac)?;
    let flood = "import socket,sys\nfor port in range(20000,21000):\n  s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n  \
                 s.bind((sys.argv[1],port))\n  s.sendto(b'x',(sys.argv[2],9))\n";
    let status = near
        .command("python3")
        .args(["-c", flood, &homes[0], BEYOND])
        .status()?;
    ensure!(status.success(), "no flood");
    let rows = lns.show(&["nat", "--subscribers"])?;
    let first = rows
        .iter()
        .find(|row| row["name"] == "user1")
        .context("a row")?;
    ensure!(first["blocks"] == 2 && first["mappings"] == 128, "{first}");
    let row = lns.show(&["nat"])?.remove(0);
    let dropped = row["dropped"]["the subscriber's port blocks are used up"].as_u64();
    ensure!(dropped == Some(1000 - 128), "{row}");
    let told = lns.process.lines_with("port blocks are used up");
    ensure!(told == 1, "told {told} times");
    ping_answered(near, BEYOND, &["-c", "2", "-I", &homes[1]])?;

    // Another pool: what exists stays, what is new gets a new address.
    let mut web = host(bench, far, "web", (TCP, &[BEYOND, "8080"]))?;
    let before = curl(near, Some(&homes[1]), &format!("{BEYOND}:8080"))?;
    let path = bench.directory.join("lns.toml");
    let text = std::fs::read_to_string(&path)?;
    std::fs::write(&path, text.replace(EXTERNAL, "198.51.100.16/30"))?;
    let said = lns.verb(&["reload"])?;
    ensure!(
        said.contains("nat.external") && said.contains("applied"),
        "{said}"
    );
    let after = curl(near, Some(&homes[1]), &format!("{BEYOND}:8080"))?;
    ensure!(
        before.starts_with("203.0.113.") && after.starts_with("198.51.100."),
        "{before} {after}"
    );
    web.wait_for_lines("peer", 2, SOON)?;
    ensure!(who(&lns, &before, &[])?["name"] == "user2", "{before}");
    // The flood's mappings are still there, and nothing answers at an address that nobody has.
    ensure!(ping(far, "198.51.100.19", &["-c", "1"])?.contains("100% packet loss"));
    lac.stop()?;
    lns.stop()
}

/// Python's ftplib in active mode, behind the NAT: the server connects to the external endpoints that it is sent, and text
/// in both directions stays whole after commands whose length changed.
pub(crate) fn translates_active_ftp(bench: &Bench<'_>) -> Result<()> {
    private_file(bench, "users.toml", &users(2))?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let store = bench.directory.join("store");
    let settings = settings(&store).replace("[nat.log]", "ftp = true\n[nat.log]");
    let lns = Headend::lns(bench, &lns_settings("", "", &settings))?;
    let lac = Headend::lac(bench, &client_settings())?;
    let homes = two_homes(bench, &lns, &lac)?;
    let mut server = host(bench, far, "ftp-server", (FTP_SERVER, &[BEYOND]))?;
    let mut client = host(bench, near, "ftp", (FTP_CLIENT, &[&homes[0], BEYOND]))?;
    client.wait_for("finished FTP", SOON)?;
    client.wait_for("finished Extended", SOON)?;
    for verb in ["PORT 203.0.113.", "EPRT 203.0.113.", "stored 300000"] {
        server.wait_for(verb, SOON)?;
    }
    let row = lns.show(&["nat"])?.remove(0);
    ensure!(
        row["ftp_rewritten"] == 14 && row["ftp_left"] == 0 && row["ftp_untracked"] == 0,
        "{row}"
    );
    // The data connections' port is that of the subscriber who asked for them.
    let named = last_word(&mut server, "EPRT")?;
    ensure!(who(&lns, &named, &[])?["name"] == "user1", "{named}");
    lac.stop()?;
    lns.stop()
}
