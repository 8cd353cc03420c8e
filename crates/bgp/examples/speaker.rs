//! `speaker [listen] ADDRESS:PORT OUR_AS [PREFIX]...`: one BGP session, whose routes are printed until it ends.
use base::{Duration, Instant};
use bgp::{Event, PeerConfig, PeerSettings, RemoteAsn, Speaker, SpeakerConfig, policy::Policy};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).peekable();
    let listens = args.next_if(|arg| arg == "listen").is_some();
    let address: SocketAddr = args.next().ok_or("which address?")?.parse()?;
    let our_as: u32 = args.next().ok_or("which AS of ours?")?.parse()?;
    let accept = || TcpListener::bind(address)?.accept();
    let accepted = listens.then(accept).transpose()?;
    let peer = accepted.as_ref().map_or(address, |(_, remote)| *remote);
    let mut settings = PeerSettings::default();
    (settings.import, settings.export) = (Some(Policy::accept()), Some(Policy::accept()));
    settings.passive = listens;
    let mut config = SpeakerConfig::new(our_as, Ipv4Addr::from_bits(our_as));
    config.peers = vec![PeerConfig::new(peer.ip(), RemoteAsn::Any, settings.into())];
    config.check()?;
    let start = std::time::Instant::now();
    let clock = || Instant::ZERO + Duration::from_nanos(start.elapsed().as_nanos() as u64);
    let mut speaker = Speaker::new(config, [7; 32]); // Take the seed from the system's randomness.
    speaker.watch_changes();
    speaker.start(clock());
    for prefix in args {
        speaker.originate(prefix.parse()?, &Default::default());
    }
    let (mut input, mut output, mut streams) = (vec![0; 65_536], Vec::new(), Vec::new());
    if let Some((stream, remote)) = accepted {
        streams.push((speaker.accept(remote, address, clock())?, stream));
    }
    loop {
        speaker.drained(clock());
        speaker.handle_timeout(clock());
        while speaker.work(10_000, clock()) {}
        while let Some(conn) = speaker.poll_ready() {
            speaker.fill(conn, &mut output, 65_536, clock());
        }
        match speaker.poll_event() {
            Some(Event::Connect { conn, .. }) => {
                streams.push((conn, TcpStream::connect(address)?));
                speaker.connected(conn, streams[0].1.local_addr()?, clock());
            }
            Some(Event::Close { last, .. }) => output.extend(last),
            Some(Event::Down { reason, .. }) => return Err(reason.to_string().into()),
            Some(_) | None => {}
        }
        std::iter::from_fn(|| speaker.poll_change()).for_each(|change| println!("{change:?}"));
        if let Some((conn, stream)) = streams.last_mut() {
            stream.write_all(&std::mem::take(&mut output))?;
            stream.set_read_timeout(Some(std::time::Duration::from_millis(20)))?;
            match stream.read(&mut input) {
                Ok(0) => speaker.closed(*conn, clock()),
                Ok(len) => speaker.receive(*conn, &input[..len], clock())?,
                Err(_) => {} // Nothing came within 20 ms.
            }
        }
    }
}
