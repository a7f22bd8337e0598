"""What a schedule's tasks do all the time: work or wait, for whom, and which waits make the makespan."""
