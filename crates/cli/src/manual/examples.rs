//! Examples for the man pages: for each command, command lines with their purpose.

/// A command without `imbrex`, and its examples: purpose, and command line without `imbrex`.
pub(super) type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// Examples of each command that does something itself.
pub(super) const EXAMPLES: [Examples; 45] = [
    (
        "simulate",
        &[
            (
                "Compare two translation layers with a conventional disk, and write a report:",
                "simulate cloudphysics-w106 --limit 100000 --drive cassuto-307g+set-associative \
                 --drive cassuto-307g+s-blocks --out results",
            ),
            ("Run a trace on a simulated drive:", "simulate trace.csv.gz --drive seagate-st8000as0022"),
            (
                "Run random writes in the words of fio:",
                "simulate rw=randwrite,bs=4k,size=10GiB,number_ios=100000 --drive emulated-smr-1",
            ),
        ],
    ),
    (
        "explain",
        &[
            (
                "Explain the ten slowest requests of a trace on two drives:",
                "explain trace.csv.gz --drive emulated-smr-1 --drive imr-1t+track-cache",
            ),
            (
                "Explain a request at the 99.9th percentile, and check the blame by replays:",
                "explain cloudphysics-w106 --limit 20000 --drive cassuto-307g+s-blocks --percentile 99.9 --replay",
            ),
        ],
    ),
    (
        "sweep",
        &[(
            "Run all points of a sweep, four at once, and continue where an earlier call ended:",
            "sweep sweep.toml --jobs 4 --out sizes",
        )],
    ),
    (
        "trace info",
        &[(
            "Print the statistics of a trace, and draw its addresses over time:",
            "trace info trace.csv.gz --plot addresses.svg",
        )],
    ),
    (
        "trace convert",
        &[
            ("Write a trace as a Parquet table:", "trace convert trace.csv.gz trace.parquet"),
            (
                "Write the first million requests of a table whose columns have no names:",
                "trace convert table.csv trace.parquet --format csv --columns time,op,offset,size --limit 1000000",
            ),
        ],
    ),
    ("trace head", &[("Print the first 20 requests of a blktrace recording:", "trace head sda.blktrace.0 -n 20")]),
    (
        "drive create",
        &[(
            "Create an emulated shingled drive in a sparse file:",
            "drive create disk.imbrex --drive seagate-st5000as0011",
        )],
    ),
    ("drive info", &[("Print the drive, its capacity and its state:", "drive info disk.imbrex")]),
    ("drive check", &[("Check an image after a crash, and change nothing:", "drive check disk.imbrex")]),
    (
        "drive dump",
        &[("Print the zones of a zoned drive with their write pointers:", "drive dump zoned.imbrex --bands")],
    ),
    (
        "drive adopt",
        &[(
            "Make a copied image a drive of its own, so that it may be opened beside the original:",
            "drive adopt copy.imbrex",
        )],
    ),
    ("drive snapshot", &[("Copy an image while it is served:", "drive snapshot disk.imbrex copy.imbrex")]),
    (
        "drive import",
        &[("Convert the parameters of a DiskSim drive to a profile:", "drive import cheetah.parv --out cheetah.toml")],
    ),
    ("drive upgrade", &[("Convert an image of an older format:", "drive upgrade disk.imbrex")]),
    (
        "drive fault unreadable",
        &[(
            "Let reads of eight sectors fail until they are written:",
            "drive fault disk.imbrex unreadable --lba 4096 --sectors 8",
        )],
    ),
    (
        "drive fault slow",
        &[(
            "Let commands that touch 64 sectors take 200 ms longer:",
            "drive fault disk.imbrex slow --lba 0 --sectors 64 --by 200ms",
        )],
    ),
    ("drive fault zone", &[("Let a zone fail:", "drive fault zoned.imbrex zone --zone 5 --state offline")]),
    (
        "drive fault pointer",
        &[("Move the write pointer of a zone:", "drive fault zoned.imbrex pointer --zone 6 --to 3")],
    ),
    ("drive fault list", &[("Print the faults of a drive:", "drive fault disk.imbrex list")]),
    ("drive fault clear", &[("Remove all faults:", "drive fault disk.imbrex clear")]),
    (
        "serve",
        &[
            (
                "Serve an image at a Unix socket, as slowly as the drive would be:",
                "serve disk.imbrex --nbd unix:disk.sock",
            ),
            (
                "Serve a new drive in memory to this machine, as fast as possible, with a live page:",
                "serve --drive emulated-smr-1 --nbd tcp:10809 --time none --window 127.0.0.1:8080",
            ),
            ("Serve a zoned drive as a Linux block device, as root:", "serve zoned.imbrex --ublk"),
            ("Serve an image as a disk of a virtual machine:", "serve disk.imbrex --vhost-user disk.sock"),
        ],
    ),
    ("lab build", &[("Build the kernel of the lab, once:", "lab build")]),
    (
        "lab run",
        &[
            (
                "Write to an ext4 on a shingled drive, in virtual time:",
                "lab run --drive seagate-st8000as0022 --fs ext4 -- dd if=/dev/zero of=/mnt/vda/file bs=1M count=100",
            ),
            (
                "Cut the power after two seconds, and keep the image:",
                "lab run --drive seagate-st8000as0022 --fs ext4 --cut 2s --out cut -- sh load.sh",
            ),
            ("Check the file system that the cut left:", "lab run --image cut/vda.img -- fsck.ext4 -fn /dev/vda"),
        ],
    ),
    (
        "fs mkfs",
        &[
            ("Create a file system on a zoned drive:", "fs mkfs /dev/sdb"),
            (
                "Create an array that survives the loss of one drive, with its metadata in a file on an SSD:",
                "fs mkfs --parity 1 --meta /ssd/meta --meta-size 1GiB /dev/sdb /dev/sdc /dev/sdd",
            ),
        ],
    ),
    (
        "fs mount",
        &[
            ("Mount a file system:", "fs mount /dev/sdb /mnt/files"),
            ("Mount it read-only, and stay in the foreground:", "fs mount -f -o ro /dev/sdb /mnt/files"),
        ],
    ),
    ("fs umount", &[("Write everything and unmount:", "fs umount /mnt/files")]),
    ("fs sync", &[("Make everything durable that was written so far:", "fs sync /mnt/files")]),
    ("fs check", &[("Check a file system that is not mounted:", "fs check /dev/sdb")]),
    (
        "fs scrub",
        &[(
            "Read all data of a mounted file system, and repair damaged rows from parity:",
            "fs scrub --repair /mnt/files",
        )],
    ),
    ("fs salvage", &[("Copy the files off a drive whose metadata are lost:", "fs salvage /dev/sdb --to /srv/rescued")]),
    ("fs stat", &[("Print the state of a mounted file system:", "fs stat /mnt/files")]),
    ("fs clean", &[("Empty zones now, while nobody waits:", "fs clean /mnt/files")]),
    ("fs add", &[("Add a drive to a mounted array:", "fs add /mnt/files --drive /dev/sde")]),
    ("fs replace", &[("Replace the second drive of an array:", "fs replace /mnt/files --drive 2 --with /dev/sde")]),
    ("fs upgrade", &[("Convert a file system of an older format:", "fs upgrade /dev/sdb")]),
    ("fs dump", &[("Print the metadata of a file system:", "fs dump /dev/sdb")]),
    ("fs bench", &[("Run a benchmark on a simulated drive:", "fs bench varmail disk.imbrex --operations 10000")]),
    ("fs age", &[("Age a file system with files of 100 GiB:", "fs age disk.imbrex --fill 100GiB")]),
    (
        "fs capacity",
        &[("Find out how large a caveat disk must be for 1 GiB of files:", "fs capacity --size 1GiB --did 16")],
    ),
    (
        "validate",
        &[(
            "Compare a simulated drive with measured requests:",
            "validate measured.csv --drive exos-x18 --columns op,offset,size,latency --units 0=read,B,B,us",
        )],
    ),
    ("fit", &[("Fit a profile to measured requests:", "fit measured.csv --from exos-x18 --out mine.toml")]),
    (
        "probe",
        &[
            ("Find out whether the drive of a mounted file system is shingled:", "probe --file /mnt/data"),
            ("Print the statements on a model:", "probe --model 'WDC WD40EFAX-68JH4N0'"),
            ("Probe a drive with reads only:", "probe /dev/sdb"),
            (
                "Run all tests on a drive without data, for two hours at most:",
                "probe /dev/sdb --destroy-data --budget 2h --report drive.html",
            ),
        ],
    ),
    (
        "list",
        &[
            ("List the translation layers:", "list layers"),
            ("Print one layer with all its parameters:", "list layers media-cache"),
        ],
    ),
    (
        "reproduce",
        &[("Reproduce one figure of a paper, with ten seeds:", "reproduce cassuto/fig12 --seeds 10 --out reproduced")],
    ),
    (
        "completions",
        &[("Print the script for bash; `source <(imbrex completions bash)` loads it:", "completions bash")],
    ),
];
