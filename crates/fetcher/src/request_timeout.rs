//! Tracks whether a request waits for its connection or for its answer, so that the time limit for
//! the answer starts once the connection is established. Also tracks whether the connection was
//! made for the request.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

tokio::task_local! {
    /// The stage of the request that this task waits for.
    static STAGE: watch::Sender<RequestStage>;
}

/// What a request is waiting for.
#[derive(Clone, Copy, Debug)]
enum RequestStage {
    /// A connection: look-up, TCP and TLS handshake.
    Connection,
    /// The answer, after a connection was made. The value is the time when that happened.
    Answer(Instant),
    /// The answer, over a connection that was kept after an earlier request. Each request starts in
    /// this stage. The value is the time when the request began.
    KeptConnection(Instant),
}

/// The phase of a request that ran out of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutPhase {
    /// The time for the whole exchange ran out before a connection was established.
    Connection,
    /// The time for the whole exchange ran out before the head of an answer arrived.
    Head,
    /// The connection was established, but the time for the head ran out.
    FirstByte,
}

/// Waits for `request` until `deadline`, but at most `first_byte` after its connection was
/// established. Only a connection made within [`noted`] reports when it was established.
pub(crate) async fn in_time<F: Future>(
    request: F,
    first_byte: Duration,
    deadline: Instant,
) -> Result<F::Output, TimeoutPhase> {
    let (sender, mut stage) = watch::channel(RequestStage::KeptConnection(Instant::now()));
    let mut request = std::pin::pin!(STAGE.scope(sender, request));
    loop {
        let now = *stage.borrow_and_update();
        let (until, late) = match now {
            RequestStage::Connection => (deadline, TimeoutPhase::Connection),
            RequestStage::Answer(since) | RequestStage::KeptConnection(since)
                if since + first_byte < deadline =>
            {
                (since + first_byte, TimeoutPhase::FirstByte)
            }
            RequestStage::Answer(_) | RequestStage::KeptConnection(_) => {
                (deadline, TimeoutPhase::Head)
            }
        };
        tokio::select! {
            // Poll the timer first. If a server floods us, the request is always ready, so a timer
            // after it would never be polled.
            biased;
            () = sleep_until(until) => return Err(late),
            Ok(()) = stage.changed() => {}
            output = &mut request => return Ok(output),
        }
    }
}

/// Records in the request's [`RequestStage`] when connecting begins and ends.
pub(crate) fn noted<F: Future>(connecting: F) -> impl Future<Output = F::Output> {
    // Read the request's stage now, not when connecting ends: the client may finish this connection
    // after it has sent the request over another connection.
    let stage = STAGE.try_with(watch::Sender::clone).ok();
    if let Some(stage) = &stage {
        stage.send_replace(RequestStage::Connection);
    }
    async move {
        let connected = connecting.await;
        if let Some(stage) = stage {
            stage.send_replace(RequestStage::Answer(Instant::now()));
        }
        connected
    }
}

/// Returns whether the request of this task, within [`in_time`], was sent over a connection of an
/// earlier request. If a new connection was made in the meantime, returns false, because the
/// request may have used the new one.
pub(crate) fn is_on_kept_connection() -> bool {
    let is_kept =
        |stage: &watch::Sender<RequestStage>| !matches!(*stage.borrow(), RequestStage::Answer(_));
    STAGE.try_with(is_kept).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const SOON: Duration = Duration::from_millis(10);
    const LATE: Duration = Duration::from_secs(3600);

    async fn check(
        (connects, answers): (bool, bool),
        (first_byte, total): (Duration, Duration),
        expect: Result<(), TimeoutPhase>,
    ) {
        let request = async move {
            noted(async {
                if !connects {
                    pending::<()>().await;
                }
            })
            .await;
            // Let `in_time` notice that the connection is established.
            tokio::task::yield_now().await;
            if !answers {
                pending::<()>().await;
            }
        };
        let result = in_time(request, first_byte, Instant::now() + total).await;
        assert_eq!(result, expect);
    }

    #[tokio::test]
    async fn the_response_time_begins_once_the_connection_is_established() {
        check((true, true), (LATE, LATE), Ok(())).await;
        check((true, false), (SOON, LATE), Err(TimeoutPhase::FirstByte)).await;
        check((true, false), (LATE, SOON), Err(TimeoutPhase::Head)).await;
        // Times out at `2 * second`, because without a connection the time for the head doesn't
        // run.
        let second = Duration::from_secs(1);
        check(
            (false, false),
            (second, 2 * second),
            Err(TimeoutPhase::Connection),
        )
        .await;
        // On a kept connection, the time for the head runs from the start.
        let result = in_time(pending::<()>(), SOON, Instant::now() + LATE).await;
        assert_eq!(result, Err(TimeoutPhase::FirstByte));
        let now = Instant::now();
        assert_eq!(in_time(ready(1), LATE, now + LATE).await, Ok(1));
    }
}
