/* client ADDRESS PORT: says "hello" there and reads to the end. It can be linked statically. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char answer[64];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (argc < 3 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		return 2;
	to.sin_port = htons((unsigned short)atoi(argv[2]));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 || write(fd, "hello", 5) != 5)
		return 1;
	shutdown(fd, SHUT_WR);
	while (read(fd, answer, sizeof(answer)) > 0)
		;
	return 0;
}
