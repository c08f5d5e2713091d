//! Arguments of `imbrex serve`.

use std::path::PathBuf;

use clap::Args;

use super::size::{size, size_from};

/// `imbrex serve`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").args(["image", "drive"]).required(true))]
#[command(group = clap::ArgGroup::new("as").args(["nbd", "ublk", "vhost_user"]).required(true))]
pub(crate) struct ServeArgs {
    /// The image to serve.
    #[arg(value_name = "FILE")]
    pub image: Option<PathBuf>,

    /// Serve a new drive held in memory instead: PROFILE[+LAYER][:key=value,…]. Its contents are lost at the end.
    #[arg(long, short = 'd', value_name = "DRIVE", add = crate::complete::drive())]
    pub drive: Option<String>,

    /// Address at which NBD clients connect: unix:PATH, tcp:PORT (this machine alone) or tcp:HOST:PORT. This option, --ublk
    /// or --vhost-user is needed.
    #[arg(long, value_name = "ADDRESS")]
    pub nbd: Option<String>,

    /// Serve as the Linux block device /dev/ublkbID instead; without ID, the first that is free (Linux 6.0, as root).
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with = "tls_cert")]
    pub ublk: Option<Option<u32>>,

    /// Serve as a disk of a virtual machine instead, at this Unix socket: QEMU's vhost-user-blk-pci (docs/serve.md).
    #[arg(long, value_name = "PATH", conflicts_with = "tls_cert")]
    pub vhost_user: Option<PathBuf>,

    /// How fast time passes: real, none (answer as fast as possible), or a factor such as 10x.
    #[arg(long, value_name = "PACE", default_value = "real", allow_hyphen_values = true)]
    pub time: String,

    /// Refuse writes; the image is not changed.
    #[arg(long)]
    pub read_only: bool,

    /// Inject the faults of this file in TOML (docs/drive.md) while serving, each at its simulated time since the start
    /// or after its number of requests. An image keeps the faults after the end.
    #[arg(long, value_name = "FILE", conflicts_with = "read_only")]
    pub faults: Option<PathBuf>,

    /// Kind of crash that flushed writes survive: the death of this process (none), or of the host too (barrier).
    #[arg(long, conflicts_with_all = ["drive", "read_only"], value_name = "WHAT", default_value = "none", value_parser = ["none", "barrier"])]
    pub sync: String,

    /// Show the drive at work on a page at this address, such as 127.0.0.1:8080; /metrics there is for Prometheus.
    #[arg(long, value_name = "ADDRESS")]
    pub window: Option<String>,

    /// Give the drive's figures as text to every client that connects to this Unix socket.
    #[arg(long, value_name = "PATH")]
    pub stats: Option<PathBuf>,

    /// Take commands at this Unix socket, to which only you can connect: snapshot, stats, shutdown (docs/serve.md).
    /// Without this option the socket of an image that is open for writing lies in your runtime folder, where
    /// `imbrex drive snapshot` looks for it.
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,

    /// Certificate chain for TLS (PEM); clients must then use TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Certificate of an authority (PEM); clients must show a certificate signed by it.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,

    /// Bounds on the resources that clients use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Bounds on the clients of a served drive. A peer is an address, a /64 network of IPv6, or a user at a Unix socket.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits on clients")]
pub(crate) struct LimitArgs {
    /// NBD connections at once; each costs under a MiB of memory and a thread, with a pace two threads, with TLS two
    /// more. When all places are taken, a new connection displaces one that never finished the handshake, or else an
    /// idle one of the peer that holds most; never one with a served request whose peer is within its share.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "NUMBER", default_value = "256", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub connections: u32,

    /// NBD connections at once from one peer.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "NUMBER", default_value = "128", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub peer_connections: u32,

    /// Memory for received payloads and for replies not yet sent, of all clients; 256 KiB of each connection do not
    /// count, and one request at a time may exceed the limit by its 32 MiB.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub payload_memory: u64,

    /// Payload memory of one peer.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "SIZE", default_value = "128MiB", value_parser = size)]
    pub peer_payload_memory: u64,

    /// Bytes a second of payloads from clients that never had a request served, all together.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "SIZE", default_value = "64MiB", value_parser = size_from::<1>)]
    pub newcomer_rate: u64,

    /// Longest time for one payload or one reply of a client while others wait for payload memory.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "SECONDS", default_value = "2", value_parser = clap::value_parser!(u32).range(1..))]
    pub shortage_time: u32,

    /// Longest time for a client's handshake, TLS included.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    pub handshake_time: u32,

    /// Longest time in which a request that has begun must arrive; each further MiB of its payload gets as long again.
    /// Between requests a client may be idle.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u32).range(1..))]
    pub request_time: u32,

    /// Longest time in which a client must take the next part of its replies, up to 256 KiB. A client that needs longer
    /// is disconnected.
    #[arg(long, conflicts_with_all = ["ublk", "vhost_user"], value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..))]
    pub reply_time: u32,

    /// Connections to the live page at once, all on one thread; half of them from one peer.
    #[arg(long, requires = "window", value_name = "NUMBER", default_value = "64", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub page_connections: u32,

    /// Largest head of a request that the live page accepts, 8 KiB at least.
    #[arg(long, requires = "window", value_name = "SIZE", default_value = "16KiB", value_parser = size_from::<8192>)]
    pub page_header: u64,

    /// Longest time that the live page waits for a request's head. After twelve times this time, a connection is
    /// closed; a request in progress may take this time once more.
    #[arg(long, requires = "window", value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub page_time: u32,

    /// A host name that the live page answers to, beside localhost, 127.0.0.1, [::1] and the address it listens at; may
    /// be given several times.
    #[arg(long, requires = "window", value_name = "NAME")]
    pub http_host: Vec<String>,
}
