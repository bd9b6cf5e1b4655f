//! One bounded HTTP exchange; names and addresses; copies of robots.txt.
