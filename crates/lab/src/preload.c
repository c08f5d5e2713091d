/* Loaded into the lab's kernel before the C library: random numbers that depend on the seed alone, and the state of
 * processors that Linux 6.12 for user mode does not know. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t getrandom(void *into, size_t bytes, unsigned int flags)
{
	static uint64_t state;
	static int is_begun;
	unsigned char *to = into;

	(void)flags;
	if (!is_begun) {
		const char *seed = getenv("IMBREX_LAB_SEED");
		state = seed ? strtoull(seed, NULL, 10) : 0;
		is_begun = 1;
	}
	for (size_t i = 0; i < bytes; i++) {
		/* SplitMix64 (Steele, Lea and Flood 2014), one byte of each number. */
		uint64_t z = (state += 0x9e3779b97f4a7c15ull);
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
		to[i] = (unsigned char)((z ^ (z >> 31)) >> 56);
	}
	return (ssize_t)bytes;
}

/* The extended state of a processor, as ptrace has it: parts of fixed places, and after 512 bytes a mask of the parts. */
#define EXTENDED_STATE ((void *)0x202)
#define STATE_BYTES_MAX 65536
#define MASK_AT 512

/* The kernel has room for the state up to the protection keys. A processor with more (AMX) refuses to take less than all of
 * its state: the rest, which no program of the guest can use, is given in its initial form. */
static long set_state(pid_t pid, const struct iovec *given)
{
	static _Alignas(64) unsigned char whole[STATE_BYTES_MAX];
	static size_t whole_bytes;
	struct iovec all = { whole, sizeof(whole) };
	uint64_t mask;

	if (whole_bytes == 0) {
		if (syscall(SYS_ptrace, (long)PTRACE_GETREGSET, (long)pid, EXTENDED_STATE, &all) < 0)
			return -1;
		whole_bytes = all.iov_len;
	}
	if (given->iov_len >= whole_bytes)
		return syscall(SYS_ptrace, (long)PTRACE_SETREGSET, (long)pid, EXTENDED_STATE, given);
	memcpy(whole, given->iov_base, given->iov_len);
	memset(whole + given->iov_len, 0, whole_bytes - given->iov_len);
	memcpy(&mask, whole + MASK_AT, sizeof(mask));
	/* Parts 0 to 9 lie within the room of the kernel. */
	mask &= 0x3ff;
	memcpy(whole + MASK_AT, &mask, sizeof(mask));
	all.iov_len = whole_bytes;
	return syscall(SYS_ptrace, (long)PTRACE_SETREGSET, (long)pid, EXTENDED_STATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;
	pid_t pid;
	void *address, *data;
	long word, result;
	/* The C library returns the word that the system call stores. */
	int is_peek = request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;

	va_start(arguments, request);
	pid = va_arg(arguments, pid_t);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);
	if (request == PTRACE_SETREGSET && address == EXTENDED_STATE)
		return set_state(pid, data);
	result = syscall(SYS_ptrace, (long)request, (long)pid, address, is_peek ? &word : data);
	if (is_peek && result >= 0) {
		errno = 0;
		return word;
	}
	return result;
}
