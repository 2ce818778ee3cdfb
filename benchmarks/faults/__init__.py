"""What happens to threads when processes, files, disks, clocks and servers fail."""
