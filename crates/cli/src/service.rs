//! The program as a service: it reports to the service manager that started it, such as systemd, when it is ready.

use sd_notify::NotifyState;

/// Reports to the service manager that the drive or directory is served; does nothing if there is none (`NOTIFY_SOCKET`
/// is not set).
pub(crate) fn report_ready() {
    if let Err(error) = sd_notify::notify(&[NotifyState::Ready]) {
        notice!("the service manager does not learn that serving has begun: {error}");
    }
}
