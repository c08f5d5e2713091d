//! Goal: a task that waits for a background task gets an error if the background task fails, and continues once the
//! cause is gone. Method: a metadata device that refuses to write checkpoints, in virtual time with a limit.

use imbrex_fs::core::{Caller, MakeOptions, MountOptions, make};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{Device, Geometry, Kind};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Bounds, Executor, Fs, FsError, executor::SECOND_NS};

use crate::support::within::within;
use crate::support::{devices, timed};

const LIMIT_NS: u64 = 1000 * SECOND_NS;

/// Makes durable empty files, from number `first` on, until one is refused; returns the number reached, and the error.
async fn make_until_refused(fs: Fs, first: u64) -> (u64, FsError) {
    for number in first.. {
        let name = format!("f{number}");
        let made = fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await;
        if let Err(error) = made.map(drop).and(fs.sync().await) {
            return (number, error);
        }
    }
    unreachable!("it ends with an error")
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_told_to_who_waits_for_room() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let drive = Device::new(&own, "drive", Box::new(timed::Timed::new(8, 256)));
        let metadata = Geometry { blocks: 300, kind: Kind::Plain };
        let refusing = devices::Refusing::new(Memory::new(metadata));
        let refused = refusing.refused.clone();
        let all = [drive, Device::new(&own, "metadata", Box::new(refusing))];
        let options = MakeOptions { store: Some("log".into()), ..MakeOptions::default() };
        make(&all[0], Some(&all[1]), &options, 0).await.unwrap();
        let bounds = Some(Bounds { pending_bytes: 1, ..Bounds::default() });
        let options = MountOptions { bounds, ..MountOptions::default() };
        let (fs, _) = Fs::mount(&own, &all, &options).await.unwrap();
        let slots = fs.superblock().layout.checkpoints;
        *refused.borrow_mut() = slots[0].0..slots[1].0 + slots[1].1;

        let (files, error) = within(&own, LIMIT_NS, make_until_refused(fs.clone(), 0)).await;
        assert!(matches!(error, FsError::Device(_)), "{error}");
        assert!(files > 10, "{files} files were made before the log was full");
        let (again, _) = within(&own, LIMIT_NS, make_until_refused(fs.clone(), files)).await;
        assert_eq!(again, files, "there is no room until there is a checkpoint");
        let removing = fs.clone();
        within(&own, LIMIT_NS, async move { removing.unlink(ROOT, b"f0").await }).await.unwrap();
        assert_eq!(fs.self_check(), Vec::<String>::new());

        *refused.borrow_mut() = 0..0;
        let going_on = fs.clone();
        let goes_on = async move {
            for number in 0..200 {
                let name = format!("g{number}");
                going_on.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await.unwrap();
                going_on.sync().await.unwrap();
            }
        };
        within(&own, LIMIT_NS, goes_on).await;
        drop(fs);
        let (fs, _) = Fs::mount(&own, &all, &options).await.unwrap();
        let names = |start: char| {
            let listed = fs.list(ROOT, 2, usize::MAX).unwrap();
            listed.iter().filter(|it| it.name[0] == start as u8).count() as u64
        };
        assert_eq!((names('f'), names('g')), (files - 1, 200), "nothing that was acknowledged is lost");
        assert_eq!(fs.lookup(ROOT, b"f0"), Err(FsError::NotFound));
    };
    executor.run(run).unwrap();
    executor.shut_down();
}
