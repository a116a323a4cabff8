/* Starts a virtual machine and ends it with the program that asked for it: `launch PROGRAM ARGUMENT...`.
 *
 * This program has a session of its own, and the machine a process group of its own: signals to the group of the caller
 * reach neither, not even SIGKILL. When standard input is closed, because the caller has ended or no longer needs the
 * machine, all processes of the machine's group are killed. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
	if (count < 2)
		return 2;
	/* Before there is a machine. It fails only for the leader of a group, which is no group of the caller. */
	setsid();
	pid_t machine = fork();
	if (machine < 0) {
		perror("fork");
		return 3;
	}
	if (machine == 0) {
		int null[2];
		setpgid(0, 0);
		/* Also if this program is killed. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Its standard input must not keep the pipe of the caller open. */
		if (pipe(null) == 0) {
			close(null[1]);
			dup2(null[0], 0);
		}
		execv(words[1], words + 1);
		perror(words[1]);
		_exit(127);
	}
	setpgid(machine, machine);
	/* The end of the caller ends the machine, not a signal to this program. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	for (;;) {
		int status;
		struct pollfd caller = {.fd = 0, .events = POLLIN};
		if (waitpid(machine, &status, WNOHANG) == machine) {
			kill(-machine, SIGKILL);
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		}
		/* Nothing is ever written there: an event is its end. */
		if (poll(&caller, 1, 20) > 0) {
			kill(-machine, SIGKILL);
			return 130;
		}
	}
}
